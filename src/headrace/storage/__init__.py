"""Files on local disks and object stores."""
