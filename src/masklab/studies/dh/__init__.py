"""`dh`: The Distributional Hypothesis Does Not Fully Explain the Benefits of MLM Pretraining (Chiang & Yogatama)."""
