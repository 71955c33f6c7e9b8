// The characters after a number or a value → the unit of the number, or the `x` of `board x 8`.
//
// A unit is words joined by `/`, then perhaps ` per ` and a word; or `%`; or `/` and a unit of time. It ends before
// the words that mean something between values, which a regular expression cannot say. No state is kept.

#include "tree_sitter/parser.h"
#include <string.h>

enum TokenType { UNIT, TIMES, RECOVERING };

// The longest word that is compared with another.
#define LONGEST 8

static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }
static bool is_letter(int32_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool is_word_char(int32_t c) { return is_letter(c) || is_digit(c) || c == '_'; }
// The two code points that look like a small mu: micro sign, Greek letter.
static bool is_mu(int32_t c) { return c == 0xB5 || c == 0x3BC; }
static bool is_blank(int32_t c) { return c == ' ' || c == '\t'; }

// A word as far as it can be one of those that are looked for. A mu is kept as `u`.
typedef struct {
  char text[LONGEST + 1];
  unsigned length;
} Word;

static Word read_word(TSLexer *lexer) {
  Word word = {{0}, 0};
  while (is_word_char(lexer->lookahead) || (word.length == 0 && is_mu(lexer->lookahead))) {
    if (word.length < LONGEST) {
      word.text[word.length] = is_mu(lexer->lookahead) ? 'u' : (char)lexer->lookahead;
    }
    word.length++;
    lexer->advance(lexer, false);
  }
  return word;
}

static bool is_one_of(const Word *word, const char *const *list, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    if (word->length <= LONGEST && strcmp(word->text, list[i]) == 0) return true;
  }
  return false;
}

// Whether a word can be part of a unit: not a word that stands between values, not `x8`.
static bool can_be_unit(const Word *word) {
  static const char *const between[] = {"x", "per", "over", "step", "as"};
  if (word->length == 0 || is_digit(word->text[0]) || word->text[0] == '_') return false;
  if (word->text[0] == 'x' && is_digit(word->text[1])) return false;
  return !is_one_of(word, between, 5);
}

static bool scan_unit_of_words(TSLexer *lexer) {
  Word word = read_word(lexer);
  if (!can_be_unit(&word)) return false;
  lexer->mark_end(lexer);
  while (lexer->lookahead == '/') {
    lexer->advance(lexer, false);
    word = read_word(lexer);
    if (!can_be_unit(&word)) return true;
    lexer->mark_end(lexer);
  }
  if (!is_blank(lexer->lookahead)) return true;
  while (is_blank(lexer->lookahead)) lexer->advance(lexer, false);
  word = read_word(lexer);
  if (word.length != 3 || strcmp(word.text, "per") != 0 || !is_blank(lexer->lookahead)) return true;
  while (is_blank(lexer->lookahead)) lexer->advance(lexer, false);
  word = read_word(lexer);
  if (can_be_unit(&word)) lexer->mark_end(lexer);
  return true;
}

static bool scan_unit(TSLexer *lexer) {
  static const char *const times[] = {"ns", "us", "ms", "s", "min", "hour", "h", "day", "year"};
  if (lexer->lookahead == '%') {
    lexer->advance(lexer, false);
    lexer->mark_end(lexer);
    return true;
  }
  if (lexer->lookahead == '/') {
    lexer->advance(lexer, false);
    Word word = read_word(lexer);
    lexer->mark_end(lexer);
    return is_one_of(&word, times, 9);
  }
  return scan_unit_of_words(lexer);
}

bool tree_sitter_ent_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
  (void)payload;
  // Then everything is valid, and nothing is a unit for sure.
  if (valid[RECOVERING]) return false;
  while (is_blank(lexer->lookahead)) lexer->advance(lexer, true);
  if (valid[TIMES] && lexer->lookahead == 'x') {
    lexer->mark_end(lexer);
    lexer->advance(lexer, false);
    if (!is_word_char(lexer->lookahead) || is_digit(lexer->lookahead)) {
      lexer->mark_end(lexer);
      lexer->result_symbol = TIMES;
      return true;
    }
    // A unit that begins with x; after a number only, and there is none so far.
    return false;
  }
  if (valid[UNIT]) {
    lexer->result_symbol = UNIT;
    return scan_unit(lexer);
  }
  return false;
}

void *tree_sitter_ent_external_scanner_create(void) { return NULL; }
void tree_sitter_ent_external_scanner_destroy(void *payload) { (void)payload; }
unsigned tree_sitter_ent_external_scanner_serialize(void *payload, char *buffer) {
  (void)payload;
  (void)buffer;
  return 0;
}
void tree_sitter_ent_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  (void)payload;
  (void)buffer;
  (void)length;
}
