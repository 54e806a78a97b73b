"""Figure 1: the language, the lag of joint gradient descent, the plans, and which of them reach the ideal gaps."""

from .figures import GAPS, RC, STYLE, WIDTH, against_steps, band, curve, plot_gaps
from .plans import parse_plan

# plan, colour, dash: Okabe-Ito colours
PLAN_STYLE = (
    ("O(1x)->A(1x)->O", "#009E73", "-"),
    ("A(1x)->O", "#CC79A7", "--"),
    ("A", STYLE["attention_gap"][0], ":"),
    ("O", STYLE["output_gap"][0], "-."),
)
SHOWN = ("AO", "A", "O", "A(1x)->O", "O(1x)->A(1x)", "O(1x)->A(1x)->O")  # in panel (c)
LAYERS = {"A": (STYLE["attention_gap"][0], "attention"), "O": (STYLE["output_gap"][0], "output"),
          "AO": ("#000000", "both")}


def overview_figure(joint, by_plan):
    """The whole figure.

    Parameters
    ----------
    joint : `Runs` of joint GD on the occurrence language
    by_plan : {plan: `Runs`} of the plans of ``PLAN_STYLE``
    """
    import matplotlib

    with matplotlib.rc_context(RC):
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, 4.3))
        above, below = figure.subfigures(2, 1)
        panels = above.subplots(1, 3, width_ratios=(0.9, 1.15, 1.15))
        draw_automaton(panels[0])
        plot_gaps(joint, panels[1], GAPS)
        panels[1].set_ylabel("gap under joint GD")
        panels[1].legend(frameon=False, loc="lower right")
        draw_plans(panels[2])
        lower = below.subplots(1, 2, sharey=True)
        for ax, gap in zip(lower, reversed(GAPS), strict=True):
            plot_plans(by_plan, ax, gap)
        lower[0].set_ylim(-1.1, 3.1)
        below.legend(*lower[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
        titles = ("the language: words with an s", "joint GD: attention lags", "the plans", "output gap of four plans",
                  "attention gap of four plans")
        for ax, letter, title in zip((*panels, *lower), "abcde", titles, strict=True):
            ax.set_title(f"({letter}) {title}", loc="left", pad=10)
        return figure


def plot_plans(by_plan, ax, gap):
    """One gap under several plans against the step: mean over seeds, band of one standard deviation; returns ax."""
    for plan, colour, dash in PLAN_STYLE:
        steps, mean, std, _ = curve(by_plan[plan], gap)
        band(ax, steps, mean, std, colour, dash, plan.replace("->", "→") + {"A": " only", "O": " only"}.get(plan, ""))
    longest = max(by_plan.values(), key=lambda runs: runs.train_loss.shape[1])
    against_steps(ax, longest, marks=())
    ax.set_ylabel(STYLE[gap][2])
    ax.lines[-1].set_label("ideal")
    return ax


def draw_automaton(ax):
    """The minimal automaton of the words over an alphabet Sigma that contain the letter s; returns ax."""
    from matplotlib.patches import Circle

    ax.set_aspect("equal", adjustable="datalim")
    ax.set_axis_off()
    ax.update_datalim([(-0.75, -0.9), (3.0, 1.3)])
    for x, name, accepting in ((0.3, "no $s$\nyet", False), (2.2, "$s$ seen", True)):
        ax.add_patch(Circle((x, 0), 0.55, fill=False, linewidth=1.2))
        if accepting:
            ax.add_patch(Circle((x, 0), 0.46, fill=False, linewidth=0.8))
        ax.text(x, 0, name, ha="center", va="center", fontsize=7)
    arrow = {"arrowstyle": "-|>", "color": "black", "linewidth": 1, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", (-0.25, 0), (-0.7, 0), arrowprops=arrow)
    ax.annotate("", (1.65, 0), (0.85, 0), arrowprops=arrow)
    ax.text(1.25, 0.08, "$s$", ha="center", va="bottom")
    for x, label in ((0.3, r"$\Sigma\setminus\{s\}$"), (2.2, r"$\Sigma$")):
        loop = {**arrow, "connectionstyle": "arc3,rad=-1.6"}
        ax.annotate("", (x + 0.22, 0.5), (x - 0.22, 0.5), arrowprops=loop)
        ax.text(x, 1.08, label, ha="center", va="bottom")
    ax.text(1.25, -0.75, "accepting: double circle", ha="center", va="top", fontsize=7, color="0.35")
    ax.autoscale_view()
    return ax


def draw_plans(ax):
    """The plans as rows of phases, (1x) narrow, to convergence wide; returns ax."""
    from matplotlib.patches import Rectangle

    ax.set_axis_off()
    ax.set_xlim(0, 4.2)
    ax.set_ylim(len(SHOWN) - 0.4, -0.6)
    for row, plan in enumerate(SHOWN):
        left = 0.0
        for phase in parse_plan(plan).phases:
            width = 0.75 if phase.steps else 2.0
            colour, label = LAYERS[phase.layers]
            ax.add_patch(Rectangle((left, row - 0.36), width - 0.08, 0.72, facecolor=colour, alpha=0.22,
                                   edgecolor=colour, linewidth=0.8))
            text = f"{phase.layers} (1x)" if phase.steps else f"{phase.layers}: {label}"
            ax.text(left + width / 2 - 0.04, row, text, ha="center", va="center", fontsize=7)
            left += width
    return ax
