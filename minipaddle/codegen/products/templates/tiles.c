/* The tiles of a processor with AMX: eight registers of 16 rows of 64 bytes, which Linux lends a
   process that asks; rows in memory are `row` words of 4 bytes apart. 0 to 3 are for sums, 2 × 2
   tiles; 4 and 5 hold rows of the left side; 6 and 7 hold columns of the right side, 4 bytes of
   each of 16 columns in a row. */
#if !defined tile_load && defined __AMX_TILE__ && defined __linux__  /* tests give C instead */
#define shape_tiles(shapes) __asm__ volatile("ldtilecfg %0" : : "m"(shapes))
#define release_tiles() __asm__ volatile("tilerelease")
#define tile_zero(t) __asm__ volatile("tilezero %%tmm" #t : :)
#define tile_load(t, p, row) \
    __asm__ volatile("tileloadd (%0,%1,4), %%tmm" #t : : "r"(p), "r"((int64_t)(row)) : "memory")
#define tile_store(t, p, row) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,4)" : : "r"(p), "r"((int64_t)(row)) : "memory")
#define multiply_tiles(how, c, a, b) \
    __asm__ volatile(how " %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#define tile_multiply(c, a, b) multiply_tiles("tdpbf16ps", c, a, b)
#define tile_multiply_bytes(c, a, b) multiply_tiles("tdpbssd", c, a, b)
static int has_tiles;
__attribute__((constructor)) static void ask_for_tiles(void)
{
    int64_t answer = 158;  /* arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA) */
    __asm__ volatile("syscall" : "+a"(answer) : "D"(0x1023), "S"(18) : "rcx", "r11", "memory");
    has_tiles = answer == 0;
}
#endif
#ifdef tile_load
enum { SIDE = 16 };  /* the rows of a tile, and the groups of 4 bytes in each */

/* Tiles for up to 16 rows of the left side, and as many that follow. */
static inline void begin_tiles(int64_t rows, int64_t more)
{
    struct { uint8_t palette, none[15]; uint16_t bytes[16]; uint8_t rows[16]; } shapes;
    memset(&shapes, 0, sizeof shapes);
    shapes.palette = 1;
    for (int t = 0; t < 8; t++) shapes.bytes[t] = 4 * SIDE, shapes.rows[t] = SIDE;
    shapes.rows[0] = shapes.rows[1] = shapes.rows[4] = rows;
    shapes.rows[2] = shapes.rows[3] = shapes.rows[5] = more;
    shape_tiles(shapes);
}
#endif
