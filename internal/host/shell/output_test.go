package shell

import (
	"bytes"
	"testing"
)

func FuzzKeeper(f *testing.F) {
	f.Add([]byte("hello world"), 5, 3)
	f.Add([]byte(""), 0, 0)
	f.Add(bytes.Repeat([]byte("0123456789"), 30), 64, 7)
	f.Fuzz(func(t *testing.T, b []byte, limit, chunk int) {
		if limit < 0 || limit > 1<<12 || chunk < 0 {
			return
		}
		k := headTailBuffer{limit: limit}
		for rest := b; len(rest) > 0; {
			n := min(chunk%100+1, len(rest))
			k.write(rest[:n])
			rest = rest[n:]
		}
		o := k.output()
		if o.Len() != min(limit, len(b)) || o.Dropped != int64(len(b)-o.Len()) {
			t.Fatalf("kept %d of %d, dropped %d, limit %d", o.Len(), len(b), o.Dropped, limit)
		}
		if !bytes.HasPrefix(b, o.Head) || !bytes.HasSuffix(b, o.Tail) {
			t.Fatalf("kept %q … %q of %q", o.Head, o.Tail, b)
		}
	})
}
