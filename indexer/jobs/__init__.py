"""Jobs that change generations: a full build, following changes, a rollback, and the steps that they share."""
