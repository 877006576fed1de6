"""The layout of the arena, and the statements that bind a run to it; test_c.py runs both."""

from minipaddle.export.arena import bind_state, lay_out


def test_the_table_then_the_arrays_then_the_plan():
    places, work, size = lay_out(9, [1, 64, 65, 0, 4], 100)
    assert places == [192, 256, 320, 448, 448]  # 64 + 72 bytes end in the third line of 64
    assert (work, size) == (512, 640)


def test_an_arena_without_arrays():
    assert lay_out(0, [], 0) == ([], 64, 64)
    assert lay_out(8, [], 1) == ([], 128, 192)


def test_a_state_is_read_in_the_file_copied_or_made_elsewhere():
    assert bind_state(3, 64, 12, None, False) == ["own->all[3] = file + 64;"]
    assert bind_state(3, 64, 12, 256, False) == ["own->all[3] = here + 256;"]
    assert bind_state(3, 64, 12, 256, True) == [
        "memcpy(here + 256, file + 64, 12);",
        "own->all[3] = here + 256;",
    ]
