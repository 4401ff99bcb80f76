package codeindex

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lay writes an outline down: the line of each section, its kind and symbol.
func lay(name, src string) (list []string) {
	for _, s := range splitSections(name, appendLines(nil, []byte(src))) {
		if s.kind != KindText {
			list = append(list, fmt.Sprintf("%d %s %s", s.line+1, s.kind, s.symbol))
		}
	}
	return list
}

func TestOutline(t *testing.T) {
	for _, tt := range []struct{ name, src, want string }{
		{"go", `package x

// A is one.
type A struct {
	b int
}

type (
	B int
	// C is three.
	C[T any] struct{ d T }
)

const (
	One = 1
	two = 2
)

var three = func() int { return 3 }

func (a *A) Do(x int) error {
	type local int
	return nil
}

func (C[T]) Have() {}
func Generic[T any](t T) {}

var text = ` + "`" + `
func not() {}
` + "`" + `
/*
func neither() {}
*/
func Last() {}
`, "4 type A; 9 type B; 11 type C; 14 value One; 21 method A.Do; 26 method C.Have; 27 function Generic; 29 value text; 35 function Last"},

		{"py", `import os

class Reader(Base):
    """Reads.
    def not_this(self):
    """
    @property
    def size(self): return 1

    async def read(self, n):
        def inner(): pass

def main(argv):
    # def commented():
    pass
`, "3 type Reader; 8 method Reader.size; 10 method Reader.read; 11 method Reader.inner; 13 function main"},

		{"ts", `export interface Options { a: number }
export default class Store<T> extends Base {
  private static async load(path: string): Promise<T> {
    if (path) {
      return this.x(path, {
      })
    }
    helper(path, () => {
    })
    setState({
    })
  }
  get size() {
    return 1
  }
  constructor(a: number) {
  }
}
export const parse = async (text: string) => {
  const inner = (x) => x
  const value = 5
}
const LIMIT = 5
const OTHER = 6
export function* gen(a) {}
export type Id = string
export enum Color { Red }
const s = ` + "`" + `
function not() {
` + "`" + `
describe("x", function () {
})
`, "1 type Options; 2 type Store; 3 method Store.load; 13 method Store.size; 16 method Store.constructor; 19 function parse; 20 function inner; 23 value LIMIT; 25 function gen; 26 type Id; 27 type Color; 28 value s"},

		{"rs", `//! Docs.
pub(crate) struct Parser<'a> { text: &'a str }

impl<'a> Parser<'a> {
    /// Parses.
    #[inline]
    pub fn parse(&mut self) -> Result<()> {
        let x = 'c';
    }
}

impl<T: Debug> fmt::Display for Wrapper<T> {
    fn fmt(&self) {}
}
pub const fn max() -> u8 { 1 }
const LIMIT: usize = 5;
macro_rules! square { () => {} }
pub trait Shape { fn area(&self) -> f64; }
`, "2 type Parser; 4 type Parser; 7 method Parser.parse; 12 type Wrapper; 13 method Wrapper.fmt; 15 function max; 16 value LIMIT; 17 function square; 18 type Shape"},

		{"java", `package x;

@Service("name")
public class Users {
    private final Map<String, User> all = new HashMap<>();

    public Users(Repo repo) {
        this.repo = repo;
    }

    @Override
    public <T> List<T> find(String name,
                            int limit) throws IOException {
        for (int i = 0; i < 3; i++) {
            helper(i);
        }
        return find(name, new Callback() {
            public void done() {
            }
        });
    }

    enum Role { ADMIN }
}
`, "4 type Users; 7 method Users.Users; 12 method Users.find; 18 method Users.done; 23 type Users.Role"},

		{"c", `#include <stdio.h>
#define LIMIT 5
#define MAX(a, b) ((a) > (b) ? (a) : (b))

struct point {
	int x;
};
struct point *make(int x);

static struct point *
other(int x, int y)
{
	if (x) {
		return call(x);
	}
	while (x) {
	}
	FOR_EACH(x) {
	}
	return NULL;
}

int main(int argc, char **argv) {
	return 0;
}
MODULE_LICENSE("GPL");
enum color { RED };
`, "2 value LIMIT; 5 type point; 11 function other; 23 function main; 27 type color"},

		{"cpp", `namespace app {
template <typename T>
class Vec : public Base {
 public:
  explicit Vec(int n) : n_(n) {
  }
  int size() const { return n_; }
};

std::string Reader::Next(int n) {
  return helper(n);
}
enum class Mode { A };
}
`, "3 type Vec; 5 method Vec.Vec; 7 method Vec.size; 10 method Reader.Next; 13 type Mode"},

		{"rb", `module App
  class User < Base
    def self.find(id)
    end

    private def name?
    end
  end
end
`, "1 module App; 2 type User; 3 method User.find; 6 method User.name?"},

		{"php", `<?php
namespace App\Http;
abstract class Kernel {
    public static function &handle($request) {
    }
}
function helper() {}
`, "2 module App; 3 type Kernel; 4 method Kernel.handle; 7 function helper"},

		{"sh", `#!/bin/sh
build() {
  go build ./...
}
function clean {
  rm -r out
}
if [ -n "$x" ]; then
  build
fi
for x in $(ls); do
  echo "$x"
done
`, "2 function build; 5 function clean"},

		{"kt", `package x
data class User(val name: String)
private suspend inline fun <T> List<T>.second(): T {
    val x = 1
}
object Registry { fun get() = 1 }
val limit = 5
`, "2 type User; 3 method List.second; 6 type Registry; 7 value limit"},

		{"swift", `public struct Point {
    var x: Int
    init(x: Int) {}
    mutating func move() {}
    static func zero() -> Point {}
}
extension Point: Equatable {}
`, "1 type Point; 3 method Point.init; 4 method Point.move; 5 method Point.zero; 7 type Point"},

		{"cs", `namespace App.Core
{
    public sealed class Store : IStore
    {
        public int Size { get; set; }
        public async Task<int> LoadAsync(string path)
        {
            foreach (var x in all) {
            }
            return await Read(path);
        }
    }
}
`, "1 module App.Core; 3 type Store; 6 method Store.LoadAsync"},

		{"md", "intro\n# Title\ntext\n```\n# not\n```\n## Part two ##\n#hashtag\n", "2 heading Title; 7 heading Part two"},
		{"txt", "func main() {}\n", ""},
		{"lua", "local function helper(x)\nend\nfunction M.run() end\n", "1 function helper; 3 function M.run"},
		{"ex", "defmodule App.Run do\n  def start(x) do\n  end\nend\n", "1 module App.Run; 2 function start"},
		{"proto", "message User {\n}\nservice Users {\n  rpc Get(Id) returns (User);\n}\n", "1 type User; 3 type Users; 4 method Users.Get"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(lay("x."+tt.name, tt.src), "; "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestSectionsCoverTheFile(t *testing.T) {
	long := "package x\n\n// Big is long.\nfunc Big() {\n" + strings.Repeat("\tx++\n", 500) + "}\n\n// Small is not.\nfunc Small() {}\n"
	for name, src := range map[string]string{"x.go": long, "x.txt": strings.Repeat("a line\n", 1000), "y.go": "", "z.go": "\n\n", "x.m": "@interface A\nint b() {\n}\n"} {
		lines := appendLines(nil, []byte(src))
		next := 0
		for _, s := range splitSections(name, lines) {
			if s.docStart != next || s.line < s.docStart || s.end <= s.line && len(lines) > 0 || s.end-s.docStart > 2*maxSection {
				t.Errorf("%s: section %+v, want one from line %d", name, s, next)
			}
			next = s.end
		}
		if next != len(lines) {
			t.Errorf("%s: sections end at line %d of %d", name, next, len(lines))
		}
	}
	got := lay("x.go", long)
	want := []string{"4 function Big", "123 function Big", "243 function Big", "363 function Big", "508 function Small"}
	if !slices.Equal(got, want) {
		t.Errorf("outline %q, want %q", got, want)
	}
}

func TestCommentsBelongToWhatTheyAreAbout(t *testing.T) {
	src := "package x\n\n// unrelated\n\n// F is\n// good.\nfunc F() {}\n"
	for _, s := range splitSections("x.go", appendLines(nil, []byte(src))) {
		if s.symbol == "F" && (s.docStart != 4 || s.line != 6) {
			t.Errorf("F begins at line %d and is declared at %d", s.docStart, s.line)
		}
	}
}

// The outline of a Go file names what the parser of the language finds at the
// top level, at the same lines.
func TestGoOutlineAgreesWithTheParser(t *testing.T) {
	dir := filepath.Join(build.Default.GOROOT, "src")
	var names []string
	for _, pkg := range []string{"net/http", "encoding/json", "go/types", "os", "text/template", "runtime"} {
		list, _ := filepath.Glob(filepath.Join(dir, pkg, "*.go"))
		names = append(names, list...)
	}
	if len(names) == 0 {
		t.Skip("the Go sources are not installed")
	}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, name, src, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		var got []string
		for _, d := range languages()[".go"].declarations(appendLines(nil, src)) {
			if d.kind != KindValue {
				got = append(got, fmt.Sprintf("%d %s", d.line+1, d.name))
			}
		}
		if want := parsedNames(set, parsed); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, want)
		}
	}
}

func parsedNames(set *token.FileSet, f *ast.File) (list []string) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			list = append(list, fmt.Sprintf("%d %s", set.Position(d.Pos()).Line, d.Name.Name))
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					list = append(list, fmt.Sprintf("%d %s", set.Position(s.Pos()).Line, s.Name.Name))
				}
			}
		}
	}
	return list
}

// Lines that take time in proportion to their square would take minutes here.
func TestOutlineOfHostileLines(t *testing.T) {
	filler := strings.Repeat("x\n", 10_000)
	for _, line := range []string{`'\'`, `"\"`, "const<", "static ", "impl<T for ", "a(", "<", "/*", "`", "@a(", "((((", "pub(", "\t"} {
		src := strings.Repeat(line, 100_000/len(line)) + "\n" + filler
		lines := appendLines(nil, []byte(src))
		for i := range languageTable {
			name := "x." + strings.Fields(languageTable[i].extensions)[0]
			if got := splitSections(name, lines); len(got) == 0 {
				t.Errorf("%s has no sections", name)
			}
		}
	}
}
