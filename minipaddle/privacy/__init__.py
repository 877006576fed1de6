"""Data that stay private: gradients of single samples are clipped, and noise added; what a network
gives away; federated learning, sums under masks. The names are Opacus' and Flower's.
"""

from .accountant import Accountant, PRVAccountant, RDPAccountant, get_noise_multiplier
from .audit import (
    CanaryAudit,
    Estimate,
    auc_of,
    audit_canaries,
    audit_membership,
    confidences,
    estimate,
    likelihood_ratios,
)
from .engine import BudgetError, DPDataLoader, DPOptimizer, GradSampleModule, PrivacyEngine
from .federated import (
    SCAFFOLD,
    FedAdam,
    FedAvg,
    FederatedClient,
    FederatedRound,
    FedProx,
    LocalTrainer,
    simulate,
    split_by_label,
    split_evenly,
)
from .masks import draw_mask, mask_array, open_sum
