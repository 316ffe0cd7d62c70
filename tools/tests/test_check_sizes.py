# SPDX-License-Identifier: Apache-2.0
from tree import make_tree

import check_sizes

CLASS = """
namespace a {
class Foo : public Bar {
 public:
  Foo(int x, std::map<int, int> y) : x_(x), y_{y} { go(); }
  int get() const { return x_; }
  void long_one(int a, int b) {
    if (a) {
      b();
    }
  }
  enum class E { kA, kB };
  std::array<int, 2> z_ = {1, 2};
};
constexpr int kTable[] = {1, 2};
template <typename T>
  requires std::is_integral_v<T>
T twice(T t) {
  const auto f = [](int q) { return q; };
  return f(t) * 2;
}
}  // namespace a
"""


def measured(text):
    return {name: (lines, parameters) for name, _, lines, parameters in check_sizes.cpp_functions(text)}


def test_finds_functions_and_not_types_tables_or_lambdas():
    found = measured(CLASS)
    assert set(found) >= {"Foo", "get", "long_one", "twice"}
    assert found["long_one"] == (5, 2)
    assert found["twice"][1] == 1
    assert "f" not in found and "E" not in found and "kTable" not in found


def test_counts_parameters_and_not_the_commas_inside_them():
    assert check_sizes.parameter_count("void f(std::map<int, int> a, int b = g(1, 2))") == 2
    assert check_sizes.parameter_count("int f()") == 0
    assert check_sizes.parameter_count("bool operator()(int a, int b)") == 2


def test_braces_in_strings_and_comments_do_not_count():
    found = measured('void f() {\n  g("}{");  // }\n  h(\'{\');\n}\nvoid k() {\n}\n')
    assert found == {"f": (4, 0), "k": (2, 0)}


def problems_of(tmp_path, contents):
    return check_sizes.check(make_tree(tmp_path, contents))[0]


def long_function(lines):
    return "void f() {\n" + "  g();\n" * (lines - 2) + "}\n"


def test_refuses_long_files_functions_and_parameter_lists(tmp_path):
    problems = problems_of(tmp_path, {
        "src/a/long.cc": "//\n" * 501,
        "src/a/door.h": "//\n" * 251,
        "src/a/f.cc": long_function(71),
        "src/a/many.cc": "void f(int a, int b, int c, int d, int e, int f) {}\n",
        "tools/check_x.py": "#\n" * 151,
    })
    assert len(problems) == 5


def test_takes_what_lies_at_the_limit(tmp_path):
    assert problems_of(tmp_path, {"src/a/f.cc": long_function(70), "src/a/door.h": "//\n" * 250}) == []


def test_refuses_a_folder_of_sixteen_sources_but_does_not_count_tests(tmp_path):
    tree = {f"src/a/f{i}.cc": "" for i in range(16)} | {f"src/b/f{i}_test.cc": "" for i in range(20)}
    assert problems_of(tmp_path, tree) == ["src/a: 16 source files, 15 allowed"]


def test_an_exception_may_only_shrink(tmp_path):
    def allow(size):
        return f'[[allow]]\nwhat = "src/a/f.cc#f"\nsize = {size}\nreason = "a table"\n'

    tree = {"src/a/f.cc": long_function(80)}
    assert problems_of(tmp_path, tree | {"tools/allowed_sizes.toml": allow(80)}) == []
    assert "lower its entry" in problems_of(tmp_path, tree | {"tools/allowed_sizes.toml": allow(90)})[0]
    assert "80 lines" in problems_of(tmp_path, tree | {"tools/allowed_sizes.toml": allow(75)})[0]
    short = {"src/a/f.cc": "", "tools/allowed_sizes.toml": allow(80)}
    assert "no longer needed" in problems_of(tmp_path, short)[0]
