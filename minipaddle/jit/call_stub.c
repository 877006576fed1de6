/* A call of a compiled program, from its arguments to its results: see bound.py.

   All that the program assumes is a list of cells: places in Python's objects, and what was there
   when Python checked the assumption last. As long as the same objects are there it still holds. If
   one is not, Python checks it again. Python owns the objects of a plan; nothing here is freed. */

#include <stdint.h>

typedef struct Object { int64_t references; struct Object *type; } Object;

extern Object *PyCFunction_NewEx(void *, Object *, Object *), *PyDescr_NewMethod(Object *, void *);
extern Object *PyDict_GetItemWithError(Object *, Object *), *PyObject_GetAttr(Object *, Object *);
extern Object *PyObject_GenericGetAttr(Object *, Object *), *PyType_GenericAlloc(Object *, int64_t);
extern Object *PyList_GetItem(Object *, int64_t), *PyTuple_GetItem(Object *, int64_t);
extern Object *PyObject_CallNoArgs(Object *), *PyObject_CallOneArg(Object *, Object *);
extern Object *PyObject_Vectorcall(Object *, Object *const *, int64_t, Object *);
extern Object *PyTuple_New(int64_t), *PyLong_FromLongLong(long long), *PyLong_FromVoidPtr(void *);
extern int64_t PyList_Size(Object *), PyTuple_Size(Object *);
extern int PyTuple_SetItem(Object *, int64_t, Object *), PyList_SetItem(Object *, int64_t, Object *);
extern int PyObject_GenericSetAttr(Object *, Object *, Object *);
extern int PyDict_Next(Object *, int64_t *, Object **, Object **);
extern int PyDict_Contains(Object *, Object *), PyObject_IsTrue(Object *);
extern int PyUnicode_Compare(Object *, Object *);
extern void *PyLong_AsVoidPtr(Object *), *PyThreadState_Get(void), *PyEval_SaveThread(void);
extern long long PyLong_AsLongLong(Object *);
extern uint64_t PyThreadState_GetID(void *);
extern void PyEval_RestoreThread(void *), Py_IncRef(Object *), Py_DecRef(Object *), PyErr_Clear(void);

/* owner[key] of a dict, owner[0] of a list, …, all items of a list, all items of a dict */
enum { ITEM, FIRST, ATTRIBUTE, CALL, LISTED, MAPPED };
typedef struct { int64_t kind; Object *owner, *key, *expected; } Cell;

enum { CONSTANT, LIST, TUPLE, TENSOR };
typedef struct { int64_t kind, count; Object *type, *expected; } Node; /* of the arguments' tree */

typedef struct {
    int64_t busy, thread, count, updates;
    int64_t setting_count, cell_count, input_count, output_count;
    Cell *settings, *cells;
    Node *nodes;
    Object **inputs, **outputs, **output_keys; /* arrays the table has; of an output that may be
                                                  used again, else 0; its id as a Python number */
    int (*run)(void *const *);
    void *const *table;
    Object *settle, *again, *bind, *new, *finish, *outer, *written, *hits, *clock, *tick, *tensor;
    Object *array_name, *stop_name, *names; /* names: of the last arguments, a tuple */
} Plan;

static Object miss; /* of a call that a plan cannot make */
static Object *ordinary, *stubs_name;

static int truth(Object *answer) /* 1 or 0; -1 after an error */
{
    const int found = answer ? PyObject_IsTrue(answer) : -1;
    Py_DecRef(answer);
    return found;
}

static Object *number_call(Object *function, int64_t k)
{
    Object *number = PyLong_FromLongLong(k), *answer = PyObject_CallOneArg(function, number);
    Py_DecRef(number);
    return answer;
}

/* Whether a list, or a dict, holds the objects of a tuple; of a dict key after key with its value */
static int same_items(const Cell *cell)
{
    const int64_t n = cell->expected ? PyTuple_Size(cell->expected) : -1;
    int64_t k = 0, at = 0;
    Object *pair[2];
    if (cell->kind == LISTED) {
        if (PyList_Size(cell->owner) != n) return 0;
        while (k < n && PyList_GetItem(cell->owner, k) == PyTuple_GetItem(cell->expected, k)) k++;
        return k == n;
    }
    for (; PyDict_Next(cell->owner, &at, &pair[0], &pair[1]); k += 2)
        if (k + 2 > n || pair[0] != PyTuple_GetItem(cell->expected, k) ||
            pair[1] != PyTuple_GetItem(cell->expected, k + 1))
            return 0;
    return k == n;
}

static int same(const Cell *cell)
{
    Object *found;
    if (cell->kind == ITEM) return PyDict_GetItemWithError(cell->owner, cell->key) == cell->expected;
    if (cell->kind == FIRST) return PyList_GetItem(cell->owner, 0) == cell->expected;
    if (cell->kind == LISTED || cell->kind == MAPPED) return same_items(cell);
    found = cell->kind == CALL ? PyObject_CallNoArgs(cell->owner)
                               : PyObject_GetAttr(cell->owner, cell->key);
    if (!found) PyErr_Clear();
    Py_DecRef(found);
    return found == cell->expected;
}

static int settings_hold(Plan *p)
{
    const int64_t thread = PyThreadState_GetID(PyThreadState_Get());
    int64_t k = thread == p->thread ? 0 : p->setting_count + 1;
    while (k < p->setting_count && same(&p->settings[k])) k++;
    if (k == p->setting_count) return 1;
    p->thread = -1;
    const int found = truth(PyObject_CallNoArgs(p->settle));
    if (found == 1) p->thread = thread;
    return found;
}

static int cells_hold(Plan *p)
{
    for (int64_t k = 0; k < p->cell_count; k++)
        if (!same(&p->cells[k])) {
            const int found = truth(number_call(p->again, k));
            if (found != 1) return found;
        }
    return 1;
}

/* Whether an argument is like the one of the plan; tensors are collected */
static int matches(const Plan *p, const Node **at, Object *x, Object ***tensors)
{
    const Node *node = (*at)++;
    if (node->kind == CONSTANT) return x == node->expected;
    if (x->type != node->type) return 0;
    if (node->kind == TENSOR) {
        Object *stop = PyObject_GenericGetAttr(x, p->stop_name);
        Py_DecRef(stop);
        if (stop != node->expected) return 0;
        *(*tensors)++ = x;
        if (!p->outer) return 1;
        Object *id = PyLong_FromVoidPtr(x);
        const int known = PyDict_Contains(p->outer, id);
        Py_DecRef(id);
        return !known;
    }
    const int list = node->kind == LIST;
    if ((list ? PyList_Size(x) : PyTuple_Size(x)) != node->count) return 0;
    for (int64_t k = 0; k < node->count; k++)
        if (!matches(p, at, list ? PyList_GetItem(x, k) : PyTuple_GetItem(x, k), tensors)) return 0;
    return 1;
}

static int bind_inputs(Plan *p, Object **tensors)
{
    for (int64_t k = 0; k < p->input_count; k++) {
        Object *array = PyObject_GenericGetAttr(tensors[k], p->array_name);
        int found = 1;
        if (array != p->inputs[k]) {
            Object *given[] = {PyLong_FromLongLong(k), array};
            p->inputs[k] = 0;
            found = array ? truth(PyObject_Vectorcall(p->bind, given, 2, 0)) : -1;
            Py_DecRef(given[0]);
            if (found == 1) p->inputs[k] = array; /* which `bind` holds */
        }
        Py_DecRef(array);
        if (found != 1) return found;
    }
    return 1;
}

/* Memory for the outputs: that of the last call, if nobody holds it any more */
static int make_outputs(Plan *p, Object **made)
{
    for (int64_t k = 0; k < p->output_count; k++) {
        Object *old = p->outputs[k];
        if (old && (uint32_t)old->references == 1 && !PyDict_Contains(p->written, p->output_keys[k]))
            Py_IncRef(made[k] = old);
        else if (!(made[k] = number_call(p->new, k)))
            return 0;
    }
    return 1;
}

static Object *tuple_of(Object **items, int64_t n)
{
    Object *tuple = PyTuple_New(n);
    for (int64_t k = 0; tuple && k < n; k++) {
        Py_IncRef(items[k]);
        PyTuple_SetItem(tuple, k, items[k]);
    }
    return tuple;
}

static Object *finish(Plan *p, Object **tensors, Object **made)
{
    const long long hits = PyLong_AsLongLong(PyList_GetItem(p->hits, 0)) + 1;
    if (p->updates) {
        PyList_SetItem(p->clock, 0, PyObject_CallNoArgs(p->tick));
        PyList_SetItem(p->clock, 1, PyLong_FromLongLong(p->updates++));
    }
    PyList_SetItem(p->hits, 0, PyLong_FromLongLong(hits));
    if (p->tensor) { /* the result is one tensor */
        Object *x = PyType_GenericAlloc(p->tensor, 0);
        if (x) PyObject_GenericSetAttr(x, p->array_name, made[0]);
        return x;
    }
    Object *given[] = {tuple_of(tensors, p->input_count), tuple_of(made, p->output_count)};
    Object *results = PyObject_Vectorcall(p->finish, given, 2, 0);
    Py_DecRef(given[0]);
    Py_DecRef(given[1]);
    return results;
}

static Object *attempt(Plan *p, Object *const *args)
{
    Object *tensors[p->input_count + 1], **end = tensors, *made[p->output_count + 1];
    const Node *at = p->nodes;
    int found = settings_hold(p);
    for (int64_t k = 0; found == 1 && k < p->count; k++) found = matches(p, &at, args[k], &end);
    if (found == 1) found = cells_hold(p);
    if (found == 1) found = bind_inputs(p, tensors);
    if (found != 1) return found ? 0 : &miss;
    for (int64_t k = 0; k < p->output_count; k++) made[k] = 0;
    Object *results = 0;
    if (make_outputs(p, made)) {
        void *thread = PyEval_SaveThread();
        const int failed = p->run(p->table);
        PyEval_RestoreThread(thread);
        results = failed ? &miss : finish(p, tensors, made);
    }
    for (int64_t k = 0; k < p->output_count; k++) Py_DecRef(made[k]);
    return results;
}

/* Whether the keywords of a call, `names` or 0, are those of the plan, in its order */
static int same_names(const Plan *p, Object *names, int64_t count)
{
    int64_t k = PyTuple_Size(p->names) == count ? 0 : count + 1;
    for (; k < count; k++) {
        Object *a = PyTuple_GetItem(p->names, k), *b = PyTuple_GetItem(names, k);
        if (a != b && PyUnicode_Compare(a, b)) return 0;
    }
    return k == count;
}

/* `__call__` of a StaticFunction; its stubs are tuples (address of a Plan, its owner) */
static Object *call(Object *self, Object *const *args, int64_t n, Object *names)
{
    const int64_t named = names ? PyTuple_Size(names) : 0, all = n + named;
    Object *results = &miss, *stubs = PyObject_GenericGetAttr(self, stubs_name);
    for (int64_t k = 0; stubs && results == &miss && k < PyList_Size(stubs); k++) {
        Object *stub = PyList_GetItem(stubs, k);
        Plan *p = PyLong_AsVoidPtr(PyTuple_GetItem(stub, 0));
        if (p->busy || p->count != all || !same_names(p, names, named)) continue;
        Py_IncRef(stub);
        p->busy = 1;
        results = attempt(p, args);
        p->busy = 0;
        Py_DecRef(stub);
    }
    Py_DecRef(stubs);
    if (results != &miss) return results;
    Object *given[all + 1];
    given[0] = self;
    for (int64_t k = 0; k < all; k++) given[k + 1] = args[k];
    return PyObject_Vectorcall(ordinary, given, n + 1, names);
}

static struct { const char *name; void *function; int flags; const char *doc; } definition =
    {"__call__", call, 0x82 /* METH_FASTCALL | METH_KEYWORDS */, 0};

__attribute__((visibility("default")))
Object *descriptor(Object *type, Object *slow, Object *stubs) /* the method of a class */
{
    Py_IncRef(ordinary = slow);
    Py_IncRef(stubs_name = stubs);
    return PyDescr_NewMethod(type, &definition);
}
