"""Objects in ordered phases: what is desired of each, who controls it, and what is written or deleted next."""
