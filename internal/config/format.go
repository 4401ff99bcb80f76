package config

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tailscale/hujson"
)

// Format is the newest settings format that coder reads. A file without a format has format 1.
const Format = 1

const (
	formatKey = "format"
	writerKey = "written_by" // the version for which the file was written
)

// checkFormat returns an error if the file's format is newer than [Format]. No
// other error is reported for such a file: its keys may have a new meaning.
func (s *source) checkFormat() error {
	o, err := toObject(s.root)
	if err != nil {
		return nil // reported when the settings are read
	}
	format, at, writer := 1, 0, ""
	for _, m := range o.Members {
		switch memberName(m) {
		case formatKey:
			at = m.Value.StartOffset
			if err := json.Unmarshal(toPlainJSON(m.Value), &format); err != nil || format < 1 {
				found := shorten(string(toPlainJSON(m.Value)))
				return s.errorAt(at, formatKey, fmt.Sprintf("format: expected a whole number from 1, found %s", found))
			}
		case writerKey:
			_ = json.Unmarshal(toPlainJSON(m.Value), &writer) // only to name the version
		}
	}
	if format <= Format {
		return nil
	}
	by := "a newer version of coder"
	if writer != "" {
		by = "coder " + shorten(writer)
	}
	const text = "these settings are in format %d, for %s; this version reads format %d"
	return s.errorAt(at, formatKey, fmt.Sprintf(text, format, by, Format))
}

// toPlainJSON returns v as plain JSON.
func toPlainJSON(v hujson.Value) []byte {
	v = v.Clone()
	v.Standardize()
	return bytes.TrimSpace(v.Pack())
}
