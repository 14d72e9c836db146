"""``python -m rgr_dist`` is ``rgr``, where the code is there but not installed: in a Ray job."""

from rgr_dist.cli import main

if __name__ == "__main__":
    main()
