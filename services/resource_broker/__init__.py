"""The resource broker: chooses, and if asked reserves, a computing element for each job whose user states preferences."""
