package codeindex

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"path"
	"runtime"
	"slices"
	"sync"

	"coder/internal/host/disk"
)

// What is kept on disk is a header and a record for each file. A record is
// its length, its checksum, and the file in numbers of variable length. What
// cannot be read is not there: such files are indexed again.
const (
	cacheName   = "code.index"
	cacheHeader = "coder code index 2\n" // the number changes with everything that is kept of a file
	cacheMode   = 0o600
	maxCache    = 1 << 30
	frame       = 8    // bytes before a record: its length and checksum
	fewUnsaved  = 100  // files that are sooner read again than kept
	unsavedPart = 0.05 // of all files that are too many not to be kept
)

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// kinds are numbered by their place.
var kinds = []Kind{Function, Method, Type, Module, Value, Heading, Text}

// load returns the files as they were when the index was last saved.
func (x *Index) load() []*file {
	if x.opts.CacheDir == "" {
		return nil
	}
	data, _, err := x.ws.ReadFile(path.Join(x.opts.CacheDir, cacheName), maxCache)
	if err != nil || len(data) < len(cacheHeader) || string(data[:len(cacheHeader)]) != cacheHeader {
		return nil
	}
	var list [][]byte // up to the first record that is not whole
	for data = data[len(cacheHeader):]; len(data) >= frame && len(list) < x.opts.MaxFiles; {
		size := uint64(binary.LittleEndian.Uint32(data))
		if size > uint64(len(data)-frame) {
			break
		}
		list = append(list, data[:frame+size])
		data = data[frame+size:]
	}
	files := make([]*file, len(list))
	workers := runtime.GOMAXPROCS(0)
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < len(list); i += workers {
				sum, body := binary.LittleEndian.Uint32(list[i][4:]), list[i][frame:]
				if crc32.Checksum(body, castagnoli()) == sum {
					files[i] = parseFile(body)
				}
			}
		})
	}
	all.Wait()
	return slices.DeleteFunc(files, func(f *file) bool { return f == nil })
}

// keep saves s beside its caller, if enough has changed since that was last
// done. If that fails nothing is lost but time.
func (x *Index) keep(ctx context.Context, s *snapshot, changed int) {
	x.unsaved += changed
	if x.opts.CacheDir == "" || x.unsaved <= min(fewUnsaved, int(unsavedPart*float64(len(s.files)))) || !x.saving.CompareAndSwap(false, true) {
		return
	}
	x.unsaved = 0
	started := x.aside(context.WithoutCancel(ctx), func(ctx context.Context) {
		defer x.saving.Store(false)
		_ = x.save(ctx, s)
	})
	if !started {
		x.saving.Store(false)
	}
}

func (x *Index) save(ctx context.Context, s *snapshot) error {
	return x.ws.Cache(path.Join(x.opts.CacheDir, cacheName), &writer{ctx: ctx, files: s.files, rest: []byte(cacheHeader)}, cacheMode)
}

// writer is what is kept on disk, made as it is read.
type writer struct {
	ctx   context.Context
	files []*file
	rest  []byte // of what is made
	buf   []byte
}

func (w *writer) Read(b []byte) (int, error) {
	for len(w.rest) == 0 {
		if err := w.ctx.Err(); err != nil {
			return 0, err
		}
		if len(w.files) == 0 {
			return 0, io.EOF
		}
		if f := w.files[0]; f.was != (disk.Stamp{}) && !f.unread {
			w.buf = appendFile(append(w.buf[:0], make([]byte, frame)...), f)
			body := w.buf[frame:]
			binary.LittleEndian.PutUint32(w.buf, uint32(len(body)))
			binary.LittleEndian.PutUint32(w.buf[4:], crc32.Checksum(body, castagnoli()))
			w.rest = w.buf
		}
		w.files = w.files[1:]
	}
	n := copy(b, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// appendFile writes f: its names (how long they are, then all in one piece), its
// stamp, its sections, their terms.
func appendFile(b []byte, f *file) []byte {
	b = binary.AppendUvarint(b, uint64(len(f.path)))
	b = binary.AppendUvarint(b, uint64(len(f.chunks)))
	for _, c := range f.chunks {
		b = binary.AppendUvarint(b, uint64(len(c.symbol)))
	}
	b = append(b, f.path...)
	for _, c := range f.chunks {
		b = append(b, c.symbol...)
	}
	b = binary.AppendUvarint(b, uint64(len(f.path)-len(f.name)))
	b = binary.AppendUvarint(b, uint64(f.was.Size))
	b = binary.AppendVarint(b, f.was.Written)
	b = binary.AppendVarint(b, f.was.Changed)
	b = binary.AppendUvarint(b, f.was.Device)
	b = binary.AppendUvarint(b, f.was.Inode)
	b = append(b, byte(f.role))
	for _, c := range f.chunks {
		later := byte(0)
		if c.later {
			later = 1
		}
		b = append(b, byte(slices.Index(kinds, c.kind)), later)
		for _, n := range []int32{c.doc, c.line - c.doc, c.end - c.line, c.tokens} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	keys := f.keys
	b = binary.AppendUvarint(b, uint64(len(keys)))
	var last uint64
	for len(keys) > 0 {
		term, n := keys[0]>>32, 1
		for n < len(keys) && keys[n]>>32 == term {
			n++
		}
		b = binary.AppendUvarint(b, term-last)
		b = binary.AppendUvarint(b, uint64(n))
		for _, k := range keys[:n] {
			b = binary.AppendUvarint(b, k>>8&0xffffff)
			b = append(b, byte(k))
		}
		last, keys = term, keys[n:]
	}
	return b
}

// parseFile reads what appendFile wrote, nil if it did not.
func parseFile(body []byte) *file {
	p := &decoder{rest: body}
	f := &file{}
	p.text(f)
	tree := p.number(len(f.path))
	f.name = f.path[tree:]
	f.was = disk.Stamp{Size: int64(p.uvarint()), Written: p.varint(), Changed: p.varint(), Device: p.uvarint(), Inode: p.uvarint()}
	f.role = role(p.number(1<<7 - 1)) // which is one byte
	f.prior = f.role.prior()
	for i := range f.chunks {
		c := &f.chunks[i]
		c.kind = kinds[p.number(len(kinds)-1)]
		c.later = p.number(1) == 1
		c.doc = int32(p.number(maxFile))
		c.line = c.doc + int32(p.number(maxFile))
		c.end = c.line + int32(p.number(maxFile))
		c.tokens = int32(p.number(maxFile))
		if c.doc == 0 {
			p.fail()
		}
		f.tokens += int(f.chunks[i].tokens)
	}
	p.keys(f)
	if p.bad || len(p.rest) > 0 {
		return nil
	}
	return f
}

// decoder reads numbers off the front of a record. Once one is missing or not
// what it may be, all that follow are zero.
type decoder struct {
	rest []byte
	bad  bool
}

func (p *decoder) fail() uint64 {
	p.bad, p.rest = true, nil
	return 0
}

func (p *decoder) uvarint() uint64 {
	if len(p.rest) > 0 && p.rest[0] < 0x80 {
		v := p.rest[0]
		p.rest = p.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(p.rest)
	if n <= 0 {
		return p.fail()
	}
	p.rest = p.rest[n:]
	return v
}

func (p *decoder) varint() int64 {
	v, n := binary.Varint(p.rest)
	if n <= 0 {
		return int64(p.fail())
	}
	p.rest = p.rest[n:]
	return v
}

// number is one that is not more than limit.
func (p *decoder) number(limit int) int {
	n := p.uvarint()
	if n > uint64(limit) {
		n = p.fail()
	}
	return int(n)
}

func (p *decoder) text(f *file) {
	name, n := p.number(len(p.rest)), p.number(len(p.rest))
	sizes, all := make([]int, n), name
	for i := range sizes {
		sizes[i] = p.number(2*maxName + 2)
		all += sizes[i]
	}
	if all > len(p.rest) || name == 0 {
		p.fail()
		return
	}
	text := string(p.rest[:all])
	p.rest = p.rest[all:]
	f.path, text = text[:name], text[name:]
	if n > 0 {
		f.chunks = make([]chunk, n)
	}
	for i, size := range sizes {
		f.chunks[i].symbol, text = text[:size], text[size:]
	}
}

// keys reads the terms. There are very many, so this is written for speed.
func (p *decoder) keys(f *file) {
	n := p.number(len(p.rest)) // each takes more than a byte
	if n == 0 || len(f.chunks) == 0 {
		p.bad = p.bad || n > 0
		return
	}
	keys, rest := make([]uint64, 0, n), p.rest
	for term := uint64(0); len(keys) < n; {
		delta, size := binary.Uvarint(rest)
		count, more := binary.Uvarint(rest[max(size, 0):])
		term += delta
		if size <= 0 || more <= 0 || delta >= 1<<32 || term >= 1<<32 || count == 0 || count > uint64(n-len(keys)) {
			p.fail()
			return
		}
		rest = rest[size+more:]
		for ; count > 0; count-- {
			section, size := uint64(0), 1
			if len(rest) > 0 && rest[0] < 0x80 {
				section = uint64(rest[0])
			} else {
				section, size = binary.Uvarint(rest)
			}
			if size <= 0 || size >= len(rest) || section >= uint64(len(f.chunks)) {
				p.fail()
				return
			}
			keys = append(keys, term<<32|section<<8|uint64(rest[size]))
			rest = rest[size+1:]
		}
	}
	f.keys, p.rest = keys, rest
}
