"""The certificate authority of a server and the certificates it issues."""
