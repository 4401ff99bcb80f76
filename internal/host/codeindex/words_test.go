package codeindex

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTerms(t *testing.T) {
	for word, want := range map[string]string{
		"parseConfig":                  "pars config",
		"ParseHTTPRequest":             "pars http request",
		"XMLHttpRequest":               "xml http request",
		"snake_case_name":              "snak cas nam",
		"SCREAMING_CASE":               "scream cas",
		"__init__":                     "init",
		"URLs":                         "url",
		"userIDs":                      "user id",
		"IDSet":                        "id set",
		"utf8":                         "utf utf8",
		"sha256Sum":                    "sha sha256 256 sum",
		"x509":                         "x509 509",
		"http2Server":                  "http http2 serv",
		"v1":                           "v1",
		"i":                            "",
		"the":                          "",
		"theEnd":                       "end",
		"func":                         "",
		"1234567":                      "",
		"404":                          "404",
		"解析配置文件":                       "解析 析配 配置 置文 文件",
		"锁":                            "锁",
		"解析Config":                     "解析 config",
		"配置2":                          "配置",
		"Ünïcode":                      "ünïcode",
		"naïveÄpfel":                   "naïve äpfel",
		"東京—大阪":                        "東京 大阪",
		"\xff\xfe":                     "",
		"a" + strings.Repeat("b", 200): "",
	} {
		if got := strings.Join(termsOf(word), " "); got != want {
			t.Errorf("terms of %q: %s, want %s", word, got, want)
		}
	}
}

func TestQuestion(t *testing.T) {
	for _, tt := range []struct{ query, want string }{
		{"where do we parse the config", "parse config"},
		{"Where is the function that parses configs?", "parses configs"},
		{"find the code", "find code"}, // nothing else to go by
		{"parseConfig", "parse config"},
		{"sha256 of utf8 text in 2 files", "sha256 utf8 text"},
		{"在哪里解析配置", "在哪 哪里 里解 解析 析配 配置"},
		{"?!", ""},
		{"the", ""},
	} {
		words, weak := queryWords(tt.query)
		if len(words) == 0 {
			words = weak
		}
		if got := strings.Join(words, " "); got != tt.want {
			t.Errorf("words of %q: %s, want %s", tt.query, got, tt.want)
		}
	}
}

func TestQuestionKnowsOtherWordsForAThing(t *testing.T) {
	has := func(q *parsedQuery, word string) bool {
		return slices.ContainsFunc(q.concepts, func(c concept) bool { return c.shareOf(hashTerm(stem(word))) > 0 })
	}
	for query, want := range map[string]string{
		"parse the configuration": "cfg",
		"remove a directory":      "delete",
		"在哪里解析配置":                 "parse",
		"怎么重试请求":                  "retry",
	} {
		if q := parseQuery(query); !has(q, want) {
			t.Errorf("%q is not about %q", query, want)
		}
	}
	if q := parseQuery("parse parser parsing"); len(q.concepts) != 1 {
		t.Errorf("forms of one word make %d concepts", len(q.concepts))
	}
	if !parseQuery("tests for the parser").wantsTests || parseQuery("latest version").wantsTests {
		t.Error("questions about tests are mistaken for others")
	}
}

func TestNamed(t *testing.T) {
	q := parseQuery("where do we parse the config")
	for i := range q.concepts {
		q.concepts[i].weight = 1
	}
	for symbol, want := range map[string]float32{
		"parseConfig": 1, "Config.parse": 1, "Loader.parse_config_file": 2. / 3, "parse": 0.5, "parseFlags": 0.25, "serve": 0, "": 0,
	} {
		if got := q.nameSimilarity(symbol); got < want-0.01 || got > want+0.01 {
			t.Errorf("%s is the query by %v, want %v", symbol, got, want)
		}
	}
}

func TestGlossary(t *testing.T) {
	for word := range glossary() {
		if len(word) > maxGlossaryEntry {
			t.Errorf("%q has %d bytes, more than are looked for", word, len(word))
		}
	}
}

func TestLexiconKnowsWhatTermsKnow(t *testing.T) {
	l := newLexicon()
	for i := range 20_000 {
		word := fmt.Sprintf("value%dOf%c%c%c", i/17576, 'a'+i%26, 'a'+i/26%26, 'a'+i/676%26)
		h := uint64(hashSeed)
		for _, c := range []byte(word) {
			h = (h ^ uint64(c)) * hashPrime
		}
		for range 2 {
			var got []uint32
			for _, id := range l.lookup(h, []byte(word)) {
				got = append(got, l.terms[id])
			}
			var want []uint32
			for _, term := range termsOf(word) {
				want = append(want, hashTerm(term))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %v, want %v", word, got, want)
			}
		}
	}
	far := 0
	for i, s := range l.slots {
		if s.hash != 0 {
			far += (i - l.findSlot(s.hash) + len(l.slots)) & (len(l.slots) - 1)
		}
	}
	if far > 2*l.used {
		t.Errorf("%d words lie %d slots from where they belong", l.used, far)
	}
}

func TestPostings(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		f := &indexedFile{}
		for range rnd.IntN(300) {
			f.postingKeys = append(f.postingKeys, postingKey(rnd.Uint32()>>(rnd.IntN(4)*10), rnd.IntN(1000), uint8(rnd.IntN(256))))
		}
		slices.Sort(f.postingKeys)
		for _, term := range []uint32{0, 1, 1 << 31, 1<<32 - 1, rnd.Uint32() >> 30} {
			var want []uint64
			for _, k := range f.postingKeys {
				if k>>32 == uint64(term) {
					want = append(want, k)
				}
			}
			if got := f.postings(term); !slices.Equal(got, want) {
				t.Fatalf("postings of %d: %x, want %x", term, got, want)
			}
		}
	}
}

func FuzzTerms(f *testing.F) {
	for _, s := range []string{"parseHTTPRequest", "URLs", "a1b2c3", "解析Config2", "\xff_\xfe", "İstanbul", "ⅷ", strings.Repeat("aB", 100)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		eachWord([]byte(text), func(word []byte) {
			for _, term := range termsOf(string(word)) {
				if n++; term == "" || !utf8.ValidString(term) && utf8.ValidString(text) {
					t.Fatalf("%q has the term %q", word, term)
				}
			}
		})
		if n > 2*len(text) {
			t.Fatalf("%d terms in %d bytes", n, len(text))
		}
		if q := parseQuery(text); len(q.concepts) > 2*maxConcepts || len(q.optional) > 2*maxConcepts {
			t.Fatalf("%d concepts, %d extra", len(q.concepts), len(q.optional))
		}
	})
}

func FuzzOutline(f *testing.F) {
	for _, s := range []string{
		"package x\ntype (\n\tA int\n)\nfunc (a *A) B() {\n`\n}\n", "class A:\n  def b(self): '''x\n", "impl<T> A for B<T> {\n fn c() {}\n",
		"# T\n```\n# x\n", "const f = async (\n", "#define X\nint a(b)\n{", "fun <T> A.b()", "enum class", "static", "/*\n", "def \xff(:\n", "@A(\n(\n)(",
	} {
		f.Add(s)
	}
	names := []string{"x.go", "x.py", "x.ts", "x.rs", "x.java", "x.c", "x.rb", "x.php", "x.sh", "x.kt", "x.swift", "x.cs", "x.md", "x.txt", "x.ex", "x.lua"}
	f.Fuzz(func(t *testing.T, src string) {
		lines := appendLines(nil, []byte(src))
		for _, name := range names {
			next := 0
			for _, s := range splitSections(name, lines) {
				if s.docStart != next || s.line < s.docStart || s.end <= s.line && len(lines) > 0 || len(s.symbol) > 2*maxName+1 || !utf8.ValidString(s.symbol) {
					t.Fatalf("%s: section %+v after line %d", name, s, next)
				}
				next = s.end
			}
			if next != len(lines) {
				t.Fatalf("%s: sections end at line %d of %d", name, next, len(lines))
			}
			file := &indexedFile{name: name}
			newFileIndexer().indexFile(file, []byte(src))
			for _, c := range file.chunks {
				parseQuery("parse a type").snippet(lines, c)
			}
		}
	})
}
