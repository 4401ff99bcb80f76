package codeindex

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"sync"
)

// Kind is the kind of a section.
type Kind string

// The kinds of section.
const (
	Function Kind = "function"
	Method   Kind = "method"
	Type     Kind = "type"
	Module   Kind = "module"
	Value    Kind = "value"
	Heading  Kind = "heading"
	Text     Kind = "text"
)

// language describes the declarations of a language, as far as single lines show them.
type language struct {
	endings   string    // file name extensions
	declares  string    // kinds, each with its keywords
	decorates string    // modifiers before the keywords
	line      []string  // starts of line comments
	block     [2]string // delimiters of block comments
	quotes    []string  // delimiters of multi-line strings
	traits    trait

	keywords  map[string]Kind
	modifiers map[string]bool
	special   [256]bool // bytes that may begin a comment or a string
}

type trait uint8

const (
	// calls: a function may have no keyword, only a name, parentheses and a body. Below the top level the
	// line must end with a brace.
	calls trait = 1 << iota
	// lowBrace: the brace of a body may be on its own line.
	lowBrace
	// topOnly: indented lines declare nothing.
	topOnly
	// groups: a keyword may precede several names in parentheses, and a function's name may follow its
	// receiver in parentheses.
	groups
	// arrows: a value may be a function.
	arrows
	// escapes: a backslash escapes a quote in multi-line strings.
	escapes
	// tags: a type's keyword may also precede its name in uses.
	tags
	// extends: a function's name may follow the type that it extends.
	extends
)

func (l *language) has(t trait) bool { return l.traits&t != 0 }

var (
	slashes  = []string{"//"}
	sharps   = []string{"#"}
	stars    = [2]string{"/*", "*/"}
	backtick = []string{"`"}
	triple   = []string{`"""`}
)

var table = []language{{
	endings: "go", line: slashes, block: stars, quotes: backtick, traits: topOnly | groups,
	declares: "function:func type:type value:var,const",
}, {
	endings: "py pyi", line: sharps, quotes: []string{`"""`, `'''`},
	declares:  "function:def type:class",
	decorates: "async",
}, {
	endings: "js jsx mjs cjs ts tsx mts cts vue svelte", line: slashes, block: stars, quotes: backtick, traits: calls | arrows | escapes,
	declares:  "function:function type:class,interface,enum,type module:namespace,module value:const,let,var",
	decorates: "export default async declare abstract public private protected static readonly override get set",
}, {
	endings: "rs", line: slashes, block: stars,
	declares:  "function:fn,macro_rules type:struct,enum,trait,union,type,impl module:mod value:const,static",
	decorates: "pub async unsafe extern default crate",
}, {
	endings: "java groovy", line: slashes, block: stars, quotes: triple, traits: calls | lowBrace,
	declares:  "type:class,interface,enum,record,@interface",
	decorates: "public private protected static final abstract sealed non-sealed strictfp default synchronized native",
}, {
	endings: "cs", line: slashes, block: stars, traits: calls | lowBrace,
	declares:  "type:class,interface,enum,record,struct,delegate module:namespace",
	decorates: "public private protected internal static sealed abstract partial readonly async override virtual unsafe extern new ref",
}, {
	endings: "c h cc cpp cxx hpp hh hxx m mm cu ino", line: slashes, block: stars, traits: calls | lowBrace | tags,
	declares:  "type:struct,class,enum,union,concept,@interface,@implementation,@protocol value:#define",
	decorates: "typedef static inline extern const constexpr virtual explicit friend template",
}, {
	endings: "kt kts", line: slashes, block: stars, quotes: triple, traits: extends,
	declares: "function:fun type:class,interface,object,typealias value:val,var",
	decorates: "public private protected internal open abstract final sealed data enum annotation inner inline suspend " +
		"override operator infix tailrec companion const lateinit external value",
}, {
	endings: "swift", line: slashes, block: stars, quotes: triple,
	declares: "function:func,init,subscript type:class,struct,enum,protocol,extension,actor,typealias value:let,var",
	decorates: "public private fileprivate internal open final static override mutating convenience required indirect " +
		"async nonisolated @objc @MainActor @discardableResult",
}, {
	endings: "scala sc", line: slashes, block: stars, quotes: triple,
	declares:  "function:def type:class,trait,object,type,enum value:val,var",
	decorates: "private protected override final sealed abstract case implicit lazy inline",
}, {
	endings: "php", line: []string{"//", "#"}, block: stars,
	declares:  "function:function type:class,interface,trait,enum value:const module:namespace",
	decorates: "public private protected static final abstract readonly",
}, {
	endings: "rb rake", line: sharps,
	declares:  "function:def type:class module:module",
	decorates: "private protected public",
}, {
	endings: "sh bash zsh ksh", line: sharps, traits: calls | topOnly,
	declares: "function:function",
}, {
	endings: "lua", line: []string{"--"},
	declares:  "function:function",
	decorates: "local",
}, {
	endings: "ex exs", line: sharps, quotes: triple,
	declares: "function:def,defp,defmacro module:defmodule type:defprotocol,defimpl",
}, {
	endings: "proto", line: slashes, block: stars,
	declares: "type:message,enum,service function:rpc",
}, {
	endings: "zig", line: slashes,
	declares:  "function:fn value:const,var",
	decorates: "pub export inline extern",
}, {
	endings: "dart", line: slashes, block: stars, quotes: []string{`"""`, `'''`}, traits: calls,
	declares:  "type:class,enum,mixin,extension,typedef",
	decorates: "abstract final static const external factory",
}}

// languages maps a file name extension to its language.
var languages = sync.OnceValue(func() map[string]*language {
	m := make(map[string]*language)
	for i := range table {
		l := &table[i]
		l.keywords, l.modifiers = make(map[string]Kind), setOf(l.decorates)
		for group := range strings.FieldsSeq(l.declares) {
			kind, words, _ := strings.Cut(group, ":")
			for w := range strings.SplitSeq(words, ",") {
				l.keywords[w] = Kind(kind)
			}
		}
		for _, mark := range slices.Concat([]string{`"`, `'`}, l.quotes, l.line, l.block[:1]) {
			if mark != "" {
				l.special[mark[0]] = true
			}
		}
		for e := range strings.FieldsSeq(l.endings) {
			m["."+e] = l
		}
	}
	return m
})

func languageOf(name string) *language { return languages()[strings.ToLower(path.Ext(name))] }

// role is the purpose of a file, judging by its name and first lines.
type role uint8

const (
	source role = 1 << iota
	prose
	test
	example
	foreign   // third-party code in the tree
	generated // generated code
)

// prior is the relevance of a file with this role, relative to a plain source file.
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
	stem := strings.TrimSuffix(base, path.Ext(base))
	for _, end := range []string{"Test", "Tests", "Spec"} {
		if strings.HasSuffix(stem, end) && len(stem) > len(end) {
			r |= test
		}
	}
	for _, mark := range testMarks {
		if i := strings.Index(base, mark); i == 0 || i > 0 && mark[0] != 't' && mark[0] != 'c' {
			r |= test
		}
	}
	if slices.ContainsFunc(madeMarks, func(m string) bool { return strings.Contains(base, m) }) || bytes.Contains(head, []byte("Code generated")) || bytes.Contains(head, []byte("@generated")) {
		r |= generated
	}
	return r
}

var (
	// binaryEnds are extensions of binary files, and of some pure data files.
	binaryEnds = words(`.png .jpg .jpeg .gif .bmp .ico .webp .svg .pdf .zip .gz .tgz .bz2 .xz .zst .7z .rar .jar .war
		.class .o .a .so .dylib .dll .exe .bin .wasm .pyc .pyo .ttf .otf .woff .woff2 .eot .mp3 .mp4 .mov .avi .webm
		.wav .ogg .flac .db .sqlite .sqlite3 .parquet .npy .npz .pt .onnx .safetensors .h5 .pkl .log .map .csv .tsv
		.ndjson .jsonl .lock .sum .snap .syso .prof .tar .iso .dmg .psd .ai .sketch .doc .docx .xls .xlsx .ppt .pptx`)
	// secretEnds are extensions of files that may contain secrets.
	secretEnds = words(".pem .key .p12 .pfx .jks .keystore .kdbx .asc .gpg .crt .cer")
	dataNames  = words("package-lock.json npm-shrinkwrap.json pnpm-lock.yaml .npmrc .netrc .pgpass id_rsa id_ed25519 .ds_store")
)

// skipped reports whether a file's name shows that it is not worth reading.
func skipped(name string) bool {
	base := strings.ToLower(path.Base(name))
	end := path.Ext(base)
	return binaryEnds()[end] || secretEnds()[end] || dataNames()[base] ||
		base == ".env" || strings.HasPrefix(base, ".env.") || strings.Contains(base, ".min.")
}
