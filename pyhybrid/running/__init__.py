"""Long work: tasks in processes, results that survive, private folders and files."""
