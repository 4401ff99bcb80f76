package files_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"coder/internal/host/workspace"
	"coder/internal/tool/files"
)

func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "%d\n", i)
	}
	return b.String()
}

func TestRead(t *testing.T) {
	ten := numbered(1, 10)
	for _, tc := range []struct {
		name, text    string
		offset, limit int
		want          string
		start, end    int
		more          bool
		total         int
	}{
		{"all", ten, 0, 0, ten, 1, 10, false, 10},
		{"a part", ten, 3, 2, "3\n4\n", 3, 4, true, 10},
		{"to the end", ten, 9, 2, "9\n10\n", 9, 10, false, 10},
		{"last lines", ten, -3, 0, "8\n9\n10\n", 8, 10, false, 10},
		{"some of the last lines", ten, -3, 1, "8\n", 8, 8, true, 10},
		{"more last lines than there are", ten, -30, 0, ten, 1, 10, false, 10},
		{"no final newline", "a\nb", 0, 0, "a\nb", 1, 2, false, 2},
		{"last line without end", "a\nb", -1, 0, "b", 2, 2, false, 2},
		{"empty", "", 0, 0, "", 1, 0, false, 0},
		{"blank lines", "\n\n\n", -2, 0, "\n\n", 2, 3, false, 3},
		{"windows line ends", "a\r\nb\r\n", 0, 0, "a\nb\n", 1, 2, false, 2},
		{"byte order mark", "\ufeffa\n", 0, 0, "a\n", 1, 1, false, 1},
		{"default limit", numbered(1, 3000), 0, 0, numbered(1, 2000), 1, 2000, true, 3000},
		{"control characters stay", "\x1b[0m\n", 0, 0, "\x1b[0m\n", 1, 1, false, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tools, dir := open(t)
			put(t, dir+"/f", tc.text)
			o := must(t, tools, "read", "path", "f", "offset", tc.offset, "limit", tc.limit)
			if o.Content != tc.want || o.Start != tc.start || o.End != tc.end || o.More != tc.more || o.Total != tc.total {
				t.Errorf("read = %+v", o)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/f", "a\nb\n")
	refused(t, tools, "read", []any{"path", "f", "offset", 3}, "past the end", "2 lines")
	refused(t, tools, "read", []any{"path", "none"}, "none", "no such file")
	refused(t, tools, "read", []any{"path", "f/x"}, "f/x")
}

// Following has_more with offset = end_line+1 gives the whole file.
func TestReadPageByPage(t *testing.T) {
	tools, dir := open(t)
	text := strings.Repeat("0123456789 0123456789 0123456789\n", 9000)
	put(t, dir+"/f", text)
	var got strings.Builder
	next := 1
	for range 100 {
		o := must(t, tools, "read", "path", "f", "offset", next, "limit", 5000)
		if len(o.Content) > 64<<10 || o.Start != next {
			t.Fatalf("page of %d bytes from %d", len(o.Content), o.Start)
		}
		got.WriteString(o.Content)
		if next = o.End + 1; !o.More {
			break
		}
	}
	if got.String() != text {
		t.Errorf("pages make %d bytes, the file has %d", got.Len(), len(text))
	}
}

func TestLongLinesAreCut(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/f", strings.Repeat("世", 5000)+"\nnext\n"+strings.Repeat("x", 2000)+"\r\n")
	o := must(t, tools, "read", "path", "f")
	want := strings.Repeat("世", 2000) + "… [9000 more bytes in this line]\nnext\n" + strings.Repeat("x", 2000) + "\n"
	if o.Content != want || o.End != 3 {
		t.Errorf("content %.40q…, end %d", o.Content, o.End)
	}
}

// big makes a file of lines whose text is large; it is sparse nowhere, so it
// counts as text.
func big(t *testing.T, name string, size int) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := strings.Repeat(strings.Repeat("x", 99)+"\n", 10_000)
	for n := 0; n < size; n += len(block) {
		if _, err := f.WriteString(block); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteString("second last\nlast"); err != nil {
		t.Fatal(err)
	}
}

func TestHugeFileIsReadInParts(t *testing.T) {
	tools, dir := open(t)
	big(t, dir+"/f", 200_000_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	first := must(t, tools, "read", "path", "f", "limit", 2)
	last := must(t, tools, "read", "path", "f", "offset", -2)
	some := must(t, tools, "read", "path", "f", "offset", 1_500_000, "limit", 1)
	runtime.ReadMemStats(&after)
	if first.Total != 0 || !first.More || first.End != 2 {
		t.Errorf("beginning = %+v", first)
	}
	if last.Content != "second last\nlast" || last.Start != -2 || last.End != -1 || last.More {
		t.Errorf("end = %+v", last)
	}
	if len(some.Content) != 100 || some.Start != 1_500_000 {
		t.Errorf("middle = %+v", some)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 8<<20 {
		t.Errorf("reading took %d bytes of memory", used)
	}
}

func TestEndOfHugeFileWithFewLines(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/f", "a\n"+strings.Repeat("x", 20<<20)+"\nb\n")
	o := must(t, tools, "read", "path", "f", "offset", -100)
	if !strings.HasPrefix(o.Content, "a\nxxx") || !strings.HasSuffix(o.Content, "more bytes in this line]\nb\n") || o.Start != -3 || o.End != -1 {
		t.Errorf("read = %.20q… from %d to %d", o.Content, o.Start, o.End)
	}
}

func TestReadStops(t *testing.T) {
	tools, dir := open(t)
	big(t, dir+"/f", 20_000_000)
	c, err := prepare(t, tools, "read", "path", "f", "offset", 190_000)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Run(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}

func BenchmarkRead10000Lines(b *testing.B) {
	dir := b.TempDir()
	put(b, dir+"/f", strings.Repeat(strconv.Itoa(1<<40)+"\n", 10_000))
	ws, err := workspace.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer ws.Close()
	tl := files.Read(ws, nil, files.Options{})
	for b.Loop() {
		c, err := tl.Prepare(b.Context(), args("path", "f"))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Run(b.Context(), io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEditTool1MB(b *testing.B) {
	tools, dir := open(b)
	var text strings.Builder
	for i := range 25_000 {
		fmt.Fprintf(&text, "line %d of a file that is a megabyte\n", i)
	}
	put(b, dir+"/f", text.String())
	for i := 0; b.Loop(); i++ {
		must(b, tools, "edit", "path", "f", "old_string", fmt.Sprintf("line 12345 of%s", strings.Repeat("!", i%2)), "new_string", fmt.Sprintf("line 12345 of%s", strings.Repeat("!", (i+1)%2)))
	}
}
