"""Run every benchmark and print its table: python -m benchmarks"""

from benchmarks import import_time, planning

for module in (import_time, planning):
    print(module.__doc__)
    module.main()
    print()
