"""The quality bench of `minimize`: problems of its own, and what the tool reaches on them.

problems     from meshes, paths, samples and truncated: what people bring, with a truth each
references   the least true loss of each, by other solvers
policies     what a user could do instead, and the best in hindsight
bench        one row per run
totals       what the rows come to
short        the few runs that the tests repeat
synthetic    the families of quadratics, and the tool on them
"""
