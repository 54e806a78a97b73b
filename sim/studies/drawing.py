"""What the studies' figures share: style, colours of plans, axes, files."""

from functools import wraps

from ..figures import RC, WIDTH, save_figure

# Okabe-Ito colours, those that stay apart with any colour vision; dash and marker tell them apart in grey print
BLUE, VERMILION, BLACK, SKY, PURPLE = "#0072B2", "#D55E00", "#000000", "#56B4E9", "#CC79A7"


def house_style(draw):
    """Decorator: draw in the style of the paper's figures."""

    @wraps(draw)
    def styled(data):
        import matplotlib

        with matplotlib.rc_context(RC):
            return draw(data)

    return styled


def figure_with_axes(rows, columns, height, **options):
    """A figure as wide as the text, ``height`` inches high, and its grid of axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height))
    return figure, figure.subplots(rows, columns, **options)


def legend_below(figure, handles, labels, columns, title=None):
    """One legend for all panels."""
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, title=title,
                  title_fontsize=RC["legend.fontsize"])


def plain_ticks(axis, ticks):
    """Ticks at the given values, written out, and none between."""
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def axis_of_steps(ax, last):
    """Steps 0 and 1 evenly, then logarithmically."""
    ax.set_xscale("symlog", linthresh=1, linscale=0.4)
    plain_ticks(ax.xaxis, [0, *(10**e for e in range(9) if 10**e <= last)])
    ax.set_xlim(-0.1, 1.1 * last)


def plan_name(plan):
    """A plan as it is printed."""
    return "joint GD" if plan == "AO" else plan.replace("->", "→")


def write(name, data, draw, out):
    """Draw a study and save its data and figure; return the paths."""
    return save_figure(name, draw(data), data.csv(), out)
