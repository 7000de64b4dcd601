"""What people see of the service: a page that asks the public interface and nothing else."""
