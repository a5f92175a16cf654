"""Long work: tasks in processes, private folders, files that are written whole."""
