// Package bundle writes a session into one file, for another machine, and reads such a file.
//
// A bundle is a compressed archive with a fixed format: the manifest, the records of the three logs
// without their seals, each line with its checksum, the file contents, saved output, and at the end the
// checksums of all entries. Reading a bundle trusts nothing in it: names are compared with the few
// valid ones and never become paths, sizes are limited, checksums are verified, and records permit
// nothing, because none has a seal of this machine.
package bundle

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/record/audit"
)

// Format and Version identify the format of a file.
const (
	Format  = "coder bundle"
	Version = 1
)

// These limits apply to reading.
const (
	maxTotal   = 1 << 30
	maxEntry   = 256 << 20
	maxEntries = 100_000
	maxRecords = 5_000_000
)

// Manifest describes a bundle.
type Manifest struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Session string    `json:"session"`
	Root    string    `json:"root"` // its workspace's path
	Home    string    `json:"home"`
	Created time.Time `json:"made"`
	Records uint64    `json:"records"`
}

// Bundle is an exported session.
type Bundle struct {
	Manifest
	Records  []event.Record
	Contents map[string][]byte // file contents, by hash
	Output   map[string][]byte // saved output of calls, by file name
	// Unchecked is the number of records without the checksum that links
	// each to those before it. Bundles of earlier versions have none.
	Unchecked int
}

// The names of a bundle's entries.
const (
	manifestName = "manifest.json"
	sumsName     = "sums.json"
	contentsDir  = "contents/"
	outputDir    = "output/"
)

func logName(l event.Log) string { return l.String() + ".jsonl" }

// Write writes b.
func Write(w io.Writer, b Bundle) error {
	b.Format, b.Version, b.Manifest.Records = Format, Version, uint64(len(b.Records))
	logs, links := make(map[event.Log]*bytes.Buffer), make(map[event.Log]audit.Link)
	for _, l := range event.AllLogs {
		logs[l], links[l] = new(bytes.Buffer), audit.FirstLink(l)
	}
	for _, r := range b.Records {
		r.Seal = ""
		line, err := event.Encode(r)
		if err != nil {
			return message.Errorf("record %d: %w", r.Seq, err)
		}
		kind := event.LogOf(r.Event)
		line, links[kind] = audit.AddChecksum(line, links[kind])
		log := logs[kind]
		log.Write(line)
		log.WriteByte('\n')
	}
	packed := gzip.NewWriter(w)
	a := archive{tar: tar.NewWriter(packed), created: b.Created, sums: make(map[string]string)}
	a.addFile(manifestName, append(jsonx.MustMarshal(b.Manifest), '\n'))
	for _, l := range event.AllLogs {
		a.addFile(logName(l), logs[l].Bytes())
	}
	for _, hash := range slices.Sorted(maps.Keys(b.Contents)) {
		a.addFile(contentsDir+hash, b.Contents[hash])
	}
	for _, name := range slices.Sorted(maps.Keys(b.Output)) {
		a.addFile(outputDir+name, b.Output[name])
	}
	a.addFile(sumsName, append(jsonx.MustMarshal(a.sums), '\n'))
	return errors.Join(a.err, a.tar.Close(), packed.Close())
}

// archive is an archive being written. After an error it writes nothing more.
type archive struct {
	tar     *tar.Writer
	created time.Time
	sums    map[string]string
	err     error
}

func (a *archive) addFile(name string, data []byte) {
	if a.err != nil {
		return
	}
	head := tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(data)), Mode: 0o600,
		ModTime: a.created.UTC().Truncate(time.Second)}
	if a.err = a.tar.WriteHeader(&head); a.err == nil {
		_, a.err = a.tar.Write(data)
	}
	a.sums[name] = checksum(data)
}

func checksum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// Error says why something is not a valid bundle.
type Error struct{ Why string }

func (e *Error) Error() string { return "cannot import this bundle: " + e.Why }

func newError(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Read reads a bundle, completely or not at all.
func Read(r io.Reader) (b Bundle, err error) {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return b, newError("not compressed like a bundle")
	}
	entries, err := readEntries(tar.NewReader(io.LimitReader(unpacked, maxTotal+1)))
	if err != nil {
		return b, err
	}
	if err := checkSums(entries); err != nil {
		return b, err
	}
	if json.Unmarshal(entries[manifestName], &b.Manifest) != nil || b.Format != Format {
		return b, newError("the manifest is invalid")
	}
	if b.Version != Version {
		return b, newError("its version is %d, but this program reads version %d", b.Version, Version)
	}
	b.Contents, b.Output = make(map[string][]byte), make(map[string][]byte)
	for name, data := range entries {
		if hash, ok := strings.CutPrefix(name, contentsDir); ok {
			if checksum(data) != hash {
				return b, newError("a file's content does not match its name")
			}
			b.Contents[hash] = data
		}
		if file, ok := strings.CutPrefix(name, outputDir); ok {
			b.Output[file] = data
		}
	}
	if b.Unchecked, err = checkChain(entries); err != nil {
		return b, err
	}
	b.Records, err = readRecords(b.Manifest, entries)
	return b, err
}

// readEntries reads the entries of an archive, by name.
func readEntries(a *tar.Reader) (map[string][]byte, error) {
	entries, total := make(map[string][]byte), int64(0)
	for {
		head, err := a.Next()
		switch {
		case errors.Is(err, io.EOF):
			return entries, nil
		case err != nil:
			return nil, newError("damaged or incomplete")
		case head.Typeflag != tar.TypeReg:
			return nil, newError("%q is a link or otherwise not a file", quoteName(head.Name))
		case !isValidEntry(head.Name):
			return nil, newError("unexpected entry %q", quoteName(head.Name))
		case entries[head.Name] != nil:
			return nil, newError("%q appears twice", quoteName(head.Name))
		case head.Size > maxEntry || total+head.Size > maxTotal || len(entries) >= maxEntries:
			return nil, newError("the file is too large")
		}
		data, err := io.ReadAll(a)
		if err != nil {
			return nil, newError("damaged or incomplete")
		}
		total += int64(len(data))
		if data == nil {
			data = []byte{}
		}
		entries[head.Name] = data
	}
}

func quoteName(name string) string {
	if len(name) > 80 {
		name = name[:80]
	}
	return name
}

// isValidEntry reports whether a bundle may have an entry with this name.
func isValidEntry(name string) bool {
	if hash, ok := strings.CutPrefix(name, contentsDir); ok {
		_, err := hex.DecodeString(hash)
		return err == nil && len(hash) == 2*sha256.Size && strings.ToLower(hash) == hash
	}
	if file, ok := strings.CutPrefix(name, outputDir); ok {
		return IsOutputName(file)
	}
	return name == manifestName || name == sumsName || slices.ContainsFunc(event.AllLogs,
		func(l event.Log) bool { return logName(l) == name })
}

// IsOutputName reports whether a name is valid for saved output: a file's name without a folder.
func IsOutputName(name string) bool {
	ok := name != "" && len(name) <= 100 && name[0] != '.' && name[0] != '-'
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
	}
	return ok
}

func checkSums(entries map[string][]byte) error {
	var sums map[string]string
	if json.Unmarshal(entries[sumsName], &sums) != nil || len(sums) == 0 {
		return newError("damaged or incomplete")
	}
	for name := range entries {
		if name != sumsName && sums[name] != checksum(entries[name]) {
			return newError("%q was changed after it was written", quoteName(name))
		}
	}
	for name := range sums {
		if entries[name] == nil {
			return newError("%q is missing", quoteName(name))
		}
	}
	return nil
}

// checkChain checks that no line was changed, removed, moved or inserted. It cannot detect rewritten
// checksums, because a bundle contains no key of coder's.
func checkChain(entries map[string][]byte) (unchecked int, err error) {
	var logs []audit.Source
	for _, l := range event.AllLogs {
		logs = append(logs, audit.Source{Log: l, Name: logName(l), Data: bytes.NewReader(entries[logName(l)])})
	}
	report, err := audit.Verify(logs, nil)
	if err != nil {
		return 0, newError("the records were changed: %v", err)
	}
	return report.Unchecked, nil
}

// readRecords merges the records of the three logs.
func readRecords(m Manifest, entries map[string][]byte) ([]event.Record, error) {
	var all []event.Record
	for _, l := range event.AllLogs {
		for line := range bytes.Lines(entries[logName(l)]) {
			line = bytes.TrimSuffix(line, []byte("\n"))
			r, _, err := event.Decode(line, l)
			if err != nil || event.LogOf(r.Event) != l || r.Session != m.Session {
				return nil, newError("%s contains data that is not a record of this session", logName(l))
			}
			if r.Seal = ""; len(all) >= maxRecords {
				return nil, newError("the file is too large")
			}
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b event.Record) int { return cmp.Compare(a.Seq, b.Seq) })
	if uint64(len(all)) != m.Records || len(all) == 0 || !event.AreConsecutive(0, all) {
		return nil, newError("records are missing")
	}
	return all, nil
}
