"""The rules that a CRD writes into its schemas: compiled when it is written, kept with what is made of it."""
