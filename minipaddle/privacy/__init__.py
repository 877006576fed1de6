"""Training on data that stay private: gradients of single samples are clipped, and noise added.

The names are Opacus', where it has the same.
"""

from .accountant import Accountant, PRVAccountant, RDPAccountant, get_noise_multiplier
from .engine import BudgetError, DPDataLoader, DPOptimizer, GradSampleModule, PrivacyEngine
