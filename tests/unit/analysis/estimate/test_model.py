"""Parameter counts against the published ones, and against a count of the tensors one by one."""

import pytest

from commbench.analysis.estimate.model import model_names, published_parameters
from commbench.errors import UsageError
from tests.unit.analysis.estimate.make import named


@pytest.mark.parametrize(("name", "published"), list(published_parameters()))
def test_named_models_have_their_published_parameters(name: str, published: int) -> None:
    rounded = published % 10**9 == 0  # GPT-3's is known to four digits only
    assert named(name).parameters == pytest.approx(published, rel=0.003 if rounded else 0, abs=0)


@pytest.mark.parametrize(("alias", "name"), [("llama-70b", "llama-3-70b"), ("LLAMA-7B", "llama-2-7b")])
def test_aliases(alias: str, name: str) -> None:
    assert named(alias) == named(name)
    assert alias.lower() in model_names()


def test_parameters_one_tensor_at_a_time() -> None:
    """Llama 3 8B as its checkpoint has it: 32 × (q, k, v, o, gate, up, down, 2 norms), embeddings, norm, output."""
    layer = [(4096, 4096), (4096, 1024), (4096, 1024), (4096, 4096), *3 * [(4096, 14336)], (4096, 1), (4096, 1)]
    tensors = [*32 * layer, (128256, 4096), (4096, 1), (128256, 4096)]
    assert named("llama-3-8b").parameters == sum(rows * columns for rows, columns in tensors)


def test_mixtral_has_13_of_its_47e9_parameters_active() -> None:
    """Jiang et al. 2024, arXiv:2401.04088: 47B, of which a token uses 13B."""
    model = named("mixtral-8x7b")
    assert round(model.parameters / 1e9) == 47
    assert round(model.active_parameters / 1e9) == 13


def test_flops_of_gpt3_are_the_published_ones() -> None:
    """Brown et al. 2020, table D.1: 3.14e23 operations for 300e9 tokens, without those of attention scores."""
    model = named("gpt3-175b")
    attention = 12 * model.layers * model.query_width * 2048 * 300e9
    assert model.step_flops(300_000_000_000, 2048) - attention == pytest.approx(3.14e23, rel=0.003)


def test_sizes_left_out_follow_from_the_others() -> None:
    model = named(layers=2, hidden=4096)
    assert (model.ffn, model.heads, model.kv_heads, model.head_width, model.vocabulary) == (16384, 32, 32, 128, 0)
    assert named(layers=2, hidden=4096, heads=16).head_width == 256
    assert named(layers=2, hidden=64).heads == 1
    assert named("llama-70b", layers=2).layers == 2
    assert "other sizes" in named("llama-70b", layers=2).name


@pytest.mark.parametrize(
    ("name", "sizes", "said"),
    [
        (None, {}, "Give --model NAME"),
        (None, {"layers": 2}, "--layers and --hidden"),
        ("llama-71b", {}, "did you mean llama-7"),
        ("llama-70b", {"kv_heads": 7}, "do not divide into 7"),
        ("mixtral-8x7b", {"top_k": 9}, "at most all"),
        ("llama-70b", {"top_k": 2}, "of --experts 0"),
        (None, {"layers": 2, "hidden": 64, "vocabulary": -1}, "at least 0"),
    ],
)
def test_what_fits_no_model_is_said(name: str | None, sizes: dict[str, int], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        named(name, **sizes)
