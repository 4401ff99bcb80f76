package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"path"
	"time"
)

// entry is a file of an archive, or a link if it has a target.
type entry struct {
	name string
	mode fs.FileMode
	data []byte
	link string
}

// writeTarGz writes entries below a folder. The same entries and the same time make the same bytes.
func writeTarGz(w io.Writer, top string, entries []entry, at time.Time) error {
	zw, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(zw)
	for _, e := range entries {
		h := &tar.Header{Name: path.Join(top, e.name), Mode: int64(e.mode), Size: int64(len(e.data)), ModTime: at,
			Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}
		if e.link != "" {
			h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.link, 0o777
		}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tw.Write(e.data); err != nil {
			return err
		}
	}
	return errors.Join(tw.Close(), zw.Close())
}

// writeZip writes entries, likewise the same bytes every time.
func writeZip(w io.Writer, entries []entry, at time.Time) error {
	zw := zip.NewWriter(w)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(e.mode)
		f, err := zw.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(e.data); err != nil {
			return err
		}
	}
	return zw.Close()
}
