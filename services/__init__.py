"""The processes of wms: one package for each service, and for the job agent."""
