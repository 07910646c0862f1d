"""The sums of an EM iteration, fast: products with dense and sparse bags, threads, compiled loops."""
