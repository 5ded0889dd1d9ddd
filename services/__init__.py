"""The processes of wms, one package each."""
