"""The executor of Snakemake whose jobs run at the sites: `snakemake --executor wms`, once `snakemake-executor-plugin-wms` is installed."""
