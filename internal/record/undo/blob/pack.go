package blob

import (
	"bufio"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"sync"

	"coder/internal/host/disk"
)

// pack writes content to f, deflated if that helps, and returns its hash and the number of bytes
// written.
func pack(f disk.File, content io.Reader) (hash string, size int64, err error) {
	in := readerPool.Get().(*bufio.Reader)
	defer readerPool.Put(in)
	in.Reset(content)
	start, _ := in.Peek(sampleSize) // the next read repeats an error
	sample := samplePool.Get().(*bytes.Buffer)
	defer samplePool.Put(sample)
	how := packSample(sample, start)
	sum := sha256.New()
	whole := io.TeeReader(in, sum)
	switch {
	case len(start) < sampleSize: // the sample is the whole content
		if _, err = io.Copy(io.Discard, whole); err == nil {
			_, err = f.Write(sample.Bytes())
		}
	case how == formatPacked:
		_, err = f.Write([]byte{formatPacked})
		err = errors.Join(err, deflate(f, whole))
	default:
		_, err = f.Write([]byte{formatPlain})
		if err == nil {
			_, err = io.Copy(f, whole)
		}
	}
	if err != nil {
		return "", 0, err
	}
	size, err = f.Seek(0, io.SeekCurrent)
	return hex.EncodeToString(sum.Sum(nil)), size, err
}

var readerPool = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, sampleSize) }}

var samplePool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// packSample encodes the start of a content as a blob, and returns the encoding.
func packSample(b *bytes.Buffer, start []byte) (how byte) {
	b.Reset()
	if len(start) >= packMin {
		b.WriteByte(formatPacked)
		if err := deflate(b, bytes.NewReader(start)); err == nil && b.Len() < len(start)*7/8 {
			return formatPacked
		}
		b.Reset()
	}
	b.WriteByte(formatPlain)
	b.Write(start)
	return formatPlain
}

// writerPool are reused writers, since each is large.
var writerPool = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed)
	return w
}}

func deflate(out io.Writer, in io.Reader) error {
	w := writerPool.Get().(*flate.Writer)
	defer writerPool.Put(w)
	w.Reset(out)
	if _, err := io.Copy(w, in); err != nil {
		return err
	}
	return w.Close()
}
