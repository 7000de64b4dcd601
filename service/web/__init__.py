"""The page for people, which uses only the public interface."""
