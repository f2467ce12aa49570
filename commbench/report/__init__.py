"""Who reads it: tables and pictures of a run. Records in, text or bytes out; nothing here prints."""
