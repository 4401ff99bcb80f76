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
	KindFunction Kind = "function"
	KindMethod   Kind = "method"
	KindType     Kind = "type"
	KindModule   Kind = "module"
	KindValue    Kind = "value"
	KindHeading  Kind = "heading"
	KindText     Kind = "text"
)

// language describes the declarations of a language, as far as single lines show them.
type language struct {
	extensions    string    // file name extensions
	kindKeywords  string    // kinds, each with its keywords
	modifierWords string    // modifiers before the keywords
	lineComments  []string  // starts of line comments
	blockComment  [2]string // delimiters of block comments
	quotes        []string  // delimiters of multi-line strings
	traits        trait

	keywords     map[string]Kind
	modifiers    map[string]bool
	specialBytes [256]bool // bytes that may begin a comment or a string
}

type trait uint8

const (
	// calls: a function may have no keyword, only a name, parentheses and a body. Below the top level the
	// line must end with a brace.
	traitBareFunctions trait = 1 << iota
	// traitBraceOnNextLine: the brace of a body may be on its own line.
	traitBraceOnNextLine
	// traitTopLevelOnly: indented lines declare nothing.
	traitTopLevelOnly
	// groups: a keyword may precede several names in parentheses, and a function's name may follow its
	// receiver in parentheses.
	traitGroups
	// arrows: a value may be a function.
	traitArrows
	// escapes: a backslash escapes a quote in multi-line strings.
	traitEscapes
	// tags: a type's keyword may also precede its name in uses.
	traitTags
	// extends: a function's name may follow the type that it extends.
	traitExtends
)

func (l *language) has(t trait) bool { return l.traits&t != 0 }

var (
	slashComments = []string{"//"}
	hashComments  = []string{"#"}
	starComment   = [2]string{"/*", "*/"}
	backtickQuote = []string{"`"}
	tripleQuote   = []string{`"""`}
)

var languageTable = []language{{
	extensions: "go", lineComments: slashComments, blockComment: starComment, quotes: backtickQuote, traits: traitTopLevelOnly | traitGroups,
	kindKeywords: "function:func type:type value:var,const",
}, {
	extensions: "py pyi", lineComments: hashComments, quotes: []string{`"""`, `'''`},
	kindKeywords:  "function:def type:class",
	modifierWords: "async",
}, {
	extensions: "js jsx mjs cjs ts tsx mts cts vue svelte", lineComments: slashComments, blockComment: starComment, quotes: backtickQuote, traits: traitBareFunctions | traitArrows | traitEscapes,
	kindKeywords:  "function:function type:class,interface,enum,type module:namespace,module value:const,let,var",
	modifierWords: "export default async declare abstract public private protected static readonly override get set",
}, {
	extensions: "rs", lineComments: slashComments, blockComment: starComment,
	kindKeywords:  "function:fn,macro_rules type:struct,enum,trait,union,type,impl module:mod value:const,static",
	modifierWords: "pub async unsafe extern default crate",
}, {
	extensions: "java groovy", lineComments: slashComments, blockComment: starComment, quotes: tripleQuote, traits: traitBareFunctions | traitBraceOnNextLine,
	kindKeywords:  "type:class,interface,enum,record,@interface",
	modifierWords: "public private protected static final abstract sealed non-sealed strictfp default synchronized native",
}, {
	extensions: "cs", lineComments: slashComments, blockComment: starComment, traits: traitBareFunctions | traitBraceOnNextLine,
	kindKeywords:  "type:class,interface,enum,record,struct,delegate module:namespace",
	modifierWords: "public private protected internal static sealed abstract partial readonly async override virtual unsafe extern new ref",
}, {
	extensions: "c h cc cpp cxx hpp hh hxx m mm cu ino", lineComments: slashComments, blockComment: starComment, traits: traitBareFunctions | traitBraceOnNextLine | traitTags,
	kindKeywords:  "type:struct,class,enum,union,concept,@interface,@implementation,@protocol value:#define",
	modifierWords: "typedef static inline extern const constexpr virtual explicit friend template",
}, {
	extensions: "kt kts", lineComments: slashComments, blockComment: starComment, quotes: tripleQuote, traits: traitExtends,
	kindKeywords: "function:fun type:class,interface,object,typealias value:val,var",
	modifierWords: "public private protected internal open abstract final sealed data enum annotation inner inline suspend " +
		"override operator infix tailrec companion const lateinit external value",
}, {
	extensions: "swift", lineComments: slashComments, blockComment: starComment, quotes: tripleQuote,
	kindKeywords: "function:func,init,subscript type:class,struct,enum,protocol,extension,actor,typealias value:let,var",
	modifierWords: "public private fileprivate internal open final static override mutating convenience required indirect " +
		"async nonisolated @objc @MainActor @discardableResult",
}, {
	extensions: "scala sc", lineComments: slashComments, blockComment: starComment, quotes: tripleQuote,
	kindKeywords:  "function:def type:class,trait,object,type,enum value:val,var",
	modifierWords: "private protected override final sealed abstract case implicit lazy inline",
}, {
	extensions: "php", lineComments: []string{"//", "#"}, blockComment: starComment,
	kindKeywords:  "function:function type:class,interface,trait,enum value:const module:namespace",
	modifierWords: "public private protected static final abstract readonly",
}, {
	extensions: "rb rake", lineComments: hashComments,
	kindKeywords:  "function:def type:class module:module",
	modifierWords: "private protected public",
}, {
	extensions: "sh bash zsh ksh", lineComments: hashComments, traits: traitBareFunctions | traitTopLevelOnly,
	kindKeywords: "function:function",
}, {
	extensions: "lua", lineComments: []string{"--"},
	kindKeywords:  "function:function",
	modifierWords: "local",
}, {
	extensions: "ex exs", lineComments: hashComments, quotes: tripleQuote,
	kindKeywords: "function:def,defp,defmacro module:defmodule type:defprotocol,defimpl",
}, {
	extensions: "proto", lineComments: slashComments, blockComment: starComment,
	kindKeywords: "type:message,enum,service function:rpc",
}, {
	extensions: "zig", lineComments: slashComments,
	kindKeywords:  "function:fn value:const,var",
	modifierWords: "pub export inline extern",
}, {
	extensions: "dart", lineComments: slashComments, blockComment: starComment, quotes: []string{`"""`, `'''`}, traits: traitBareFunctions,
	kindKeywords:  "type:class,enum,mixin,extension,typedef",
	modifierWords: "abstract final static const external factory",
}}

// languages maps a file name extension to its language.
var languages = sync.OnceValue(func() map[string]*language {
	m := make(map[string]*language)
	for i := range languageTable {
		l := &languageTable[i]
		l.keywords, l.modifiers = make(map[string]Kind), newSet(l.modifierWords)
		for group := range strings.FieldsSeq(l.kindKeywords) {
			kind, words, _ := strings.Cut(group, ":")
			for w := range strings.SplitSeq(words, ",") {
				l.keywords[w] = Kind(kind)
			}
		}
		for _, mark := range slices.Concat([]string{`"`, `'`}, l.quotes, l.lineComments, l.blockComment[:1]) {
			if mark != "" {
				l.specialBytes[mark[0]] = true
			}
		}
		for e := range strings.FieldsSeq(l.extensions) {
			m["."+e] = l
		}
	}
	return m
})

func languageOf(name string) *language { return languages()[strings.ToLower(path.Ext(name))] }

// fileRole is the purpose of a file, judging by its name and first lines.
type fileRole uint8

const (
	roleSource fileRole = 1 << iota
	roleProse
	roleTest
	roleExample
	roleForeign   // third-party code in the tree
	roleGenerated // generated code
)

// priorWeight is the relevance of a file with this role, relative to a plain source file.
func (r fileRole) priorWeight() float32 {
	p := float32(1)
	if r&roleSource == 0 {
		p = 0.5
	}
	for _, w := range []struct {
		role   fileRole
		factor float32
	}{{roleProse, 1.4}, {roleTest, 0.5}, {roleExample, 0.8}, {roleForeign, 0.4}, {roleGenerated, 0.4}} {
		if r&w.role != 0 {
			p *= w.factor
		}
	}
	return p
}

var (
	testDirs         = lazySet("test tests testdata __tests__ spec specs fixtures mocks __mocks__ e2e golden snapshots")
	exampleDirs      = lazySet("example examples demo demos sample samples benchmark benchmarks tutorial")
	foreignDirs      = lazySet("vendor vendored third_party thirdparty 3rdparty external extern deps bower_components pods site-packages")
	generatedDirs    = lazySet("dist build out target generated gen __generated__ coverage")
	markdownExts     = lazySet(".md .markdown .mdx")
	proseExts        = lazySet(".md .markdown .mdx .rst .txt .adoc .org .tex")
	testMarkers      = []string{"_test.", ".test.", ".spec.", "_spec.", "-test.", "test_", "conftest."}
	generatedMarkers = []string{".pb.", "_pb2.", ".generated.", ".g.dart", "zz_generated", "_string.go", ".gen."}
)

func roleOf(name string, head []byte) (r fileRole) {
	if languageOf(name) != nil {
		r |= roleSource
	}
	dir, base := path.Split(name)
	if proseExts().has(path.Ext(base)) {
		r |= roleProse
	}
	for part := range strings.SplitSeq(strings.ToLower(dir), "/") {
		switch {
		case testDirs()[part]:
			r |= roleTest
		case exampleDirs()[part]:
			r |= roleExample
		case foreignDirs()[part]:
			r |= roleForeign
		case generatedDirs()[part]:
			r |= roleGenerated
		}
	}
	stem := strings.TrimSuffix(base, path.Ext(base))
	for _, end := range []string{"Test", "Tests", "Spec"} {
		if strings.HasSuffix(stem, end) && len(stem) > len(end) {
			r |= roleTest
		}
	}
	for _, mark := range testMarkers {
		if i := strings.Index(base, mark); i == 0 || i > 0 && mark[0] != 't' && mark[0] != 'c' {
			r |= roleTest
		}
	}
	if slices.ContainsFunc(generatedMarkers, func(m string) bool { return strings.Contains(base, m) }) || bytes.Contains(head, []byte("Code generated")) || bytes.Contains(head, []byte("@generated")) {
		r |= roleGenerated
	}
	return r
}

var (
	// binaryExts are extensions of binary files, and of some pure data files.
	binaryExts = lazySet(`.png .jpg .jpeg .gif .bmp .ico .webp .svg .pdf .zip .gz .tgz .bz2 .xz .zst .7z .rar .jar .war
		.class .o .a .so .dylib .dll .exe .bin .wasm .pyc .pyo .ttf .otf .woff .woff2 .eot .mp3 .mp4 .mov .avi .webm
		.wav .ogg .flac .db .sqlite .sqlite3 .parquet .npy .npz .pt .onnx .safetensors .h5 .pkl .log .map .csv .tsv
		.ndjson .jsonl .lock .sum .snap .syso .prof .tar .iso .dmg .psd .ai .sketch .doc .docx .xls .xlsx .ppt .pptx`)
	// secretExts are extensions of files that may contain secrets.
	secretExts    = lazySet(".pem .key .p12 .pfx .jks .keystore .kdbx .asc .gpg .crt .cer")
	dataFileNames = lazySet("package-lock.json npm-shrinkwrap.json pnpm-lock.yaml .npmrc .netrc .pgpass id_rsa id_ed25519 .ds_store")
)

// isSkipped reports whether a file's name shows that it is not worth reading.
func isSkipped(name string) bool {
	base := strings.ToLower(path.Base(name))
	end := path.Ext(base)
	return binaryExts()[end] || secretExts()[end] || dataFileNames()[base] ||
		base == ".env" || strings.HasPrefix(base, ".env.") || strings.Contains(base, ".min.")
}
