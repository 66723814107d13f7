"""Boards: entries to a holdout, in an order that is certain where it is claimed, with ties where it is not."""

from afresh.boards.board import Board
from afresh.boards.order import Constraints, Order
from afresh.boards.receipt import table_from
from afresh.boards.results import ItemResults, made_up_results, read_results, table_of_results
from afresh.boards.table import BoardTable, Standing, Submitted

__all__ = [
    "Board",
    "BoardTable",
    "Constraints",
    "ItemResults",
    "Order",
    "Standing",
    "Submitted",
    "made_up_results",
    "read_results",
    "table_from",
    "table_of_results",
]
