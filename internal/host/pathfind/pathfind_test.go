package pathfind_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"coder/internal/host/pathfind"
)

// of makes a finder of paths that has read them.
func of(t testing.TB, paths ...string) *pathfind.Finder {
	t.Helper()
	f := pathfind.New(listing(&paths), func() time.Time { return time.Unix(0, 0) }) // it is read once
	t.Cleanup(f.Close)
	f.Wait(context.Background())
	return f
}

func listing(paths *[]string) func(context.Context, func(string) bool) {
	return func(_ context.Context, each func(string) bool) {
		for _, p := range *paths {
			if !each(p) {
				return
			}
		}
	}
}

// A file that has come meanwhile is found by whoever types its name in one go.
func TestAFileThatIsNewIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		paths := []string{"main.go"}
		f := pathfind.New(listing(&paths), time.Now)
		defer f.Close()
		f.Wait(t.Context())
		synctest.Wait()
		paths = append(paths, "new.md")
		time.Sleep(10 * time.Second)
		if got, more := f.Find("new", 5); len(got) > 0 || !more {
			t.Errorf("found %q, more: %v", got, more)
		}
		synctest.Wait()
		if got, more := f.Find("new", 5); !slices.Equal(got, []string{"new.md"}) || more {
			t.Errorf("found %q, more: %v", got, more)
		}
	})
}

func TestFilesAreFoundByTheirLetters(t *testing.T) {
	f := of(t, "docs/", "文档/", "main.go", ".github/", "docs/REPLY.md", "internal/ui/", "文档/说明.md", ".github/main.yml",
		"internal/ui/repl/repl.go", "internal/ui/repl/repl_test.go", "internal/ui/term/reply.go", "src/UserProfile.tsx", "src/upper/x.ts")
	for _, tt := range []struct {
		typed string
		want  []string
	}{
		{"", []string{"docs/", "文档/", "main.go", "docs/REPLY.md", "internal/ui/"}},
		{"repl", []string{"internal/ui/repl/repl.go", "docs/REPLY.md", "internal/ui/term/reply.go", "internal/ui/repl/repl_test.go"}},
		{"ply.go", []string{"internal/ui/term/reply.go"}},
		{"rt", []string{"internal/ui/repl/repl_test.go"}},
		{"up", []string{"src/upper/x.ts", "src/UserProfile.tsx"}},
		{"usrprf", []string{"src/UserProfile.tsx"}},
		{"ui/rep", []string{"internal/ui/repl/repl.go", "internal/ui/repl/repl_test.go", "internal/ui/term/reply.go"}},
		{"./main", []string{"main.go", ".github/main.yml"}},
		{"MAIN", []string{"main.go", ".github/main.yml"}},
		{"docs/", []string{"docs/REPLY.md"}},
		{"说明", []string{"文档/说明.md"}},
		{"明说", nil},
		{"zzz", nil},
	} {
		got, more := f.Find(tt.typed, 5)
		if len(tt.want) > 0 { // the best of them
			got = got[:min(len(got), len(tt.want))]
		}
		if !slices.Equal(got, tt.want) || more {
			t.Errorf("%s: %q, want %q (more: %v)", tt.typed, got, tt.want, more)
		}
	}
}

// What is found by typing letter after letter, erasing and going on, is what is
// found by asking at once.
func TestNarrowingFindsTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	paths := tree(random, 2000)
	f := of(t, paths...)
	typed := ""
	for range 300 {
		if n := len(typed); n > 0 && random.IntN(3) == 0 {
			typed = typed[:random.IntN(n)]
		} else {
			p := paths[random.IntN(len(paths))]
			typed += string(p[random.IntN(len(p))])
		}
		got, _ := f.Find(typed, 20)
		if want, _ := of(t, paths...).Find(typed, 20); !slices.Equal(got, want) {
			t.Fatalf("%q: %q, want %q", typed, got, want)
		}
	}
}

func TestNobodyWaitsForTheTree(t *testing.T) {
	goOn, now := make(chan struct{}), time.Unix(0, 0)
	files := []string{"one.go"}
	reads := 0
	f := pathfind.New(func(ctx context.Context, each func(string) bool) {
		if reads++; reads > 1 {
			for _, p := range files {
				each(p)
			}
			return
		}
		for i := range 4096 {
			each(fmt.Sprintf("a%d", i))
		}
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		each("late")
	}, func() time.Time { return now })
	defer f.Close()
	for { // what has been read is found while the rest is not there yet
		found, more := f.Find("a77", 1)
		if !more {
			t.Fatal("the tree has been read")
		}
		if slices.Equal(found, []string{"a77"}) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(goOn)
	f.Wait(context.Background())
	if found, more := f.Find("late", 1); more || !slices.Equal(found, []string{"late"}) {
		t.Errorf("%q, more: %v", found, more)
	}
	if f.Find("", 1); reads != 1 {
		t.Error("read again at once")
	}
	now = now.Add(time.Hour)
	if found, _ := f.Find("", 1); !slices.Equal(found, []string{"a0"}) { // the list there is serves
		t.Errorf("%q", found)
	}
	for {
		if found, _ := f.Find("one", 1); slices.Equal(found, files) {
			break
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTheEndOfTheProgramEndsReading(t *testing.T) {
	f := pathfind.New(func(ctx context.Context, _ func(string) bool) { <-ctx.Done() }, time.Now)
	f.Find("x", 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	f.Wait(ctx)
	f.Close()
}

// tree is the paths of a tree that might be somebody's.
func tree(random *rand.Rand, n int) (paths []string) {
	words := strings.Fields("api app assets auth base build cache client cmd common config core data db docs edit event file handler index " +
		"internal lib log main model network page parse queue render report route server service session store table test user util view widget")
	word := func() string { return words[random.IntN(len(words))] }
	for i := range n {
		parts := []string{word(), word(), fmt.Sprintf("%s%d", word(), i%97)}
		paths = append(paths, strings.Join(append(parts, fmt.Sprintf("%s_%s%d.go", word(), word(), i)), "/"))
	}
	return paths
}

// BenchmarkTyping is one letter after the other over a tree of 200,000 files.
func BenchmarkTyping(b *testing.B) {
	f := of(b, tree(rand.New(rand.NewPCG(1, 2)), 200_000)...)
	const typed = "servhandte"
	for i := range len(typed) {
		b.Run(typed[:i+1], func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				f.Find("~", 1) // forget
				f.Find(typed[:i], 50)
				b.StartTimer()
				f.Find(typed[:i+1], 50)
			}
		})
	}
}
