package codeindex

import (
	"bytes"
	"path"
	"slices"
	"strings"
)

// role is what a file is for, as far as its name and first lines tell.
type role uint8

const (
	source role = 1 << iota
	prose
	test
	example
	foreign   // other people's code, kept in the tree
	generated // by a program
)

// prior is how likely a file of this role holds what is asked for, next to a
// plain source file.
func (r role) prior() float32 {
	p := float32(1)
	if r&source == 0 {
		p = 0.5
	}
	for _, w := range []struct {
		role   role
		factor float32
	}{{prose, 1.4}, {test, 0.5}, {example, 0.8}, {foreign, 0.4}, {generated, 0.4}} {
		if r&w.role != 0 {
			p *= w.factor
		}
	}
	return p
}

var (
	testDirs    = words("test tests testdata __tests__ spec specs fixtures mocks __mocks__ e2e golden snapshots")
	exampleDirs = words("example examples demo demos sample samples benchmark benchmarks tutorial")
	foreignDirs = words("vendor vendored third_party thirdparty 3rdparty external extern deps bower_components pods site-packages")
	builtDirs   = words("dist build out target generated gen __generated__ coverage")
	markdown    = words(".md .markdown .mdx")
	proseEnds   = words(".md .markdown .mdx .rst .txt .adoc .org .tex")
	testMarks   = []string{"_test.", ".test.", ".spec.", "_spec.", "-test.", "test_", "conftest."}
	madeMarks   = []string{".pb.", "_pb2.", ".generated.", ".g.dart", "zz_generated", "_string.go", ".gen."}
)

func roleOf(name string, head []byte) (r role) {
	if languageOf(name) != nil {
		r |= source
	}
	dir, base := path.Split(name)
	if proseEnds().has(path.Ext(base)) {
		r |= prose
	}
	for part := range strings.SplitSeq(strings.ToLower(dir), "/") {
		switch {
		case testDirs()[part]:
			r |= test
		case exampleDirs()[part]:
			r |= example
		case foreignDirs()[part]:
			r |= foreign
		case builtDirs()[part]:
			r |= generated
		}
	}
	if isTest(base) {
		r |= test
	}
	if slices.ContainsFunc(madeMarks, func(m string) bool { return strings.Contains(base, m) }) || bytes.Contains(head, []byte("Code generated")) || bytes.Contains(head, []byte("@generated")) {
		r |= generated
	}
	return r
}

func isTest(base string) bool {
	stem := strings.TrimSuffix(base, path.Ext(base))
	for _, end := range []string{"Test", "Tests", "Spec"} {
		if strings.HasSuffix(stem, end) && len(stem) > len(end) {
			return true
		}
	}
	for _, mark := range testMarks {
		if i := strings.Index(base, mark); i == 0 || i > 0 && mark[0] != 't' && mark[0] != 'c' {
			return true
		}
	}
	return false
}

var (
	// binaryEnds are files that hold no text, and some that hold only data.
	binaryEnds = words(`.png .jpg .jpeg .gif .bmp .ico .webp .svg .pdf .zip .gz .tgz .bz2 .xz .zst .7z .rar .jar .war
		.class .o .a .so .dylib .dll .exe .bin .wasm .pyc .pyo .ttf .otf .woff .woff2 .eot .mp3 .mp4 .mov .avi .webm
		.wav .ogg .flac .db .sqlite .sqlite3 .parquet .npy .npz .pt .onnx .safetensors .h5 .pkl .log .map .csv .tsv
		.ndjson .jsonl .lock .sum .snap .syso .prof .tar .iso .dmg .psd .ai .sketch .doc .docx .xls .xlsx .ppt .pptx`)
	// secretEnds are files that may hold secrets: nobody asked to see those.
	secretEnds = words(".pem .key .p12 .pfx .jks .keystore .kdbx .asc .gpg .crt .cer")
	dataNames  = words("package-lock.json npm-shrinkwrap.json pnpm-lock.yaml .npmrc .netrc .pgpass id_rsa id_ed25519 .ds_store")
)

// skipped reports whether a file is not worth reading, going by its name.
func skipped(name string) bool {
	base := strings.ToLower(path.Base(name))
	end := path.Ext(base)
	return binaryEnds()[end] || secretEnds()[end] || dataNames()[base] ||
		base == ".env" || strings.HasPrefix(base, ".env.") || strings.Contains(base, ".min.")
}
