"""What whoever runs the service needs: processes, logs, counts, alarms."""
