// SPDX-License-Identifier: Apache-2.0
//
// The pickles below were written by CPython 3.11: pickle.dumps(value, protocol).

#include "format/pickle/unpickle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "open/test_data.h"

namespace headrace {
namespace {

using namespace std::string_literals;
using Type = PickleNode::Type;

bool says(const Status& status, std::string_view part) {
  return status.text().find(part) != std::string::npos;
}

// As Python's repr, near enough.
std::string show(const Pickle& p, uint32_t n, int depth = 0) {
  const PickleNode& node = p.nodes[n];
  if (depth > 8) return "...";
  switch (node.type) {
    case Type::kNone:
      return "None";
    case Type::kBool:
      return node.integer != 0 ? "True" : "False";
    case Type::kInt:
      return std::to_string(node.integer);
    case Type::kBigInt:
      return "big";
    case Type::kFloat:
      return fmt::format("{}", node.number);
    case Type::kText:
      return fmt::format("'{}'", node.text);
    case Type::kBytes:
      return fmt::format("b'{}'", node.text);
    default:
      break;
  }
  std::string out;
  for (const uint32_t item : p.items[node.items])
    out += (out.empty() ? "" : ",") + show(p, item, depth + 1);
  const std::string_view around = node.type == Type::kList    ? "[]"
                                  : node.type == Type::kTuple ? "()"
                                  : node.type == Type::kDict  ? "{}"
                                                              : "<>";
  return around.substr(0, 1).data()[0] + out + around[1];
}
std::string load(const std::string& bytes) {
  const auto p = unpickle(as_bytes(bytes));
  return p.ok() ? show(p.value(), p.value().root) : "error: " + p.status().text();
}

TEST(Unpickle, every_protocol_gives_the_same_dict) {
  const std::string wanted = "{'a.jpg',3,'b.jpg',-1}";
  EXPECT_EQ(load("(dp0\nVa.jpg\np1\nI3\nsVb.jpg\np2\nI-1\ns."), wanted);
  EXPECT_EQ(load("}q\0(X\5\0\0\0a.jpgq\1K\3X\5\0\0\0b.jpgq\2J\xff\xff\xff\xffu."s), wanted);
  EXPECT_EQ(load("\x80\2}q\0(X\5\0\0\0a.jpgq\1K\3X\5\0\0\0b.jpgq\2J\xff\xff\xff\xffu."s), wanted);
  EXPECT_EQ(
      load(
          "\x80\4\x95\x1c\0\0\0\0\0\0\0}\x94(\x8c\5a.jpg\x94K\3\x8c\5b.jpg\x94J\xff\xff\xff\xffu."s),
      wanted);
  EXPECT_EQ(
      load(
          "\x80\5\x95\x1c\0\0\0\0\0\0\0}\x94(\x8c\5a.jpg\x94K\3\x8c\5b.jpg\x94J\xff\xff\xff\xffu."s),
      wanted);
}

TEST(Unpickle, scalars_and_containers) {
  EXPECT_EQ(load("\x80\2(N\x88\x89M\1\2\x8a\2\xff\x7f\x8a\1\x80\x8a\0G?\xe0\0\0\0\0\0\0t."s),
            "(None,True,False,513,32767,-128,0,0.5)");
  EXPECT_EQ(load("(I01\nI00\nL12L\nF1.5\nS'text'\nt."), "(True,False,12,1.5,'text')");
  EXPECT_EQ(load("\x80\4\x8f(K\1K\2\x90."s), "<1,2>");
  EXPECT_EQ(load("\x80\4(K\1\x91."s), "<1>");
  EXPECT_EQ(load("\x80\3(C\2hi]K\1aK\1\x85K\1K\2\x86K\1K\2K\3\x87)t."s),
            "(b'hi',[1],(1),(1,2),(1,2,3),())");
  EXPECT_EQ(load("\x80\2\x8a\t\0\0\0\0\0\0\0\0\1."s), "big");
  EXPECT_EQ(load("\x80\2]q\0h\0a."s), "[[[[[[[[[...]]]]]]]]]");  // a list that holds itself
}

TEST(Unpickle, code_is_refused_by_opcode_and_class_and_never_run) {
  const Status os = unpickle(as_bytes("cos\nsystem\n(S'touch /tmp/pwned'\ntR.")).status();
  EXPECT_EQ(os.code(), Code::kCorrupt);
  EXPECT_TRUE(says(os, "GLOBAL for os.system") && says(os, "nothing was executed")) << os.text();
  const Status stack = unpickle(as_bytes("\x80\4\x8c\5posix\x8c\6system\x93."s)).status();
  EXPECT_TRUE(says(stack, "STACK_GLOBAL for posix.system")) << stack.text();
  for (const auto& [code, name] : {std::pair{"R"s, "REDUCE"},
                                   {"b"s, "BUILD"},
                                   {"ios\nsystem\n"s, "INST for os.system"},
                                   {"o"s, "OBJ"},
                                   {"\x81"s, "NEWOBJ"},
                                   {"\x82\1"s, "EXT1"},
                                   {"P1\n"s, "PERSID"},
                                   {"Q"s, "BINPERSID"}})
    EXPECT_TRUE(says(unpickle(as_bytes("]]" + code + ".")).status(), name)) << name;
}

TEST(Unpickle, damage_is_an_error_with_its_offset) {
  const std::string good = "\x80\2}q\0(X\5\0\0\0a.jpgq\1K\3X\5\0\0\0b.jpgq\2J\xff\xff\xff\xffu."s;
  for (size_t n = 0; n < good.size(); ++n) {
    const Status s = unpickle(as_bytes(good.substr(0, n))).status();
    EXPECT_EQ(s.code(), Code::kCorrupt) << n;
  }
  for (const char* bad : {".", "a.", "]a.", "e.", "]K", "t.", "0.", "}K\1u.", "(K\1d.", "h\1.",
                          "K\1K\2s.", "Sx\n.", "]r\xff\xff\xff\x7f."})
    EXPECT_FALSE(unpickle(as_bytes(bad)).ok()) << bad;
  EXPECT_TRUE(says(unpickle(as_bytes("N\xff.")).status(), "offset 1"));
}

std::vector<TestSample> read_list(const std::string& pickle, Status* error = nullptr) {
  auto store = std::make_shared<MemoryStore>();
  store->put("d/a.jpg", "A");
  store->put("d/b.jpg", "B");
  store->put("d/l.pkl", pickle);
  const auto opened = open_source({"d/l.pkl"}, {.store = store, .keep_sidecars = false});
  if (error != nullptr) *error = opened.status();
  return opened.ok() ? read_samples(*opened.value().source).value() : std::vector<TestSample>();
}

TEST(PickleList, a_dict_or_pairs_or_paths) {
  const std::vector<TestSample> wanted = {{"a", {{"cls", "3"}, {"jpg", "A"}}},
                                          {"b", {{"cls", "-1"}, {"jpg", "B"}}}};
  EXPECT_EQ(read_list("\x80\2}(X\5\0\0\0a.jpgK\3X\5\0\0\0b.jpgJ\xff\xff\xff\xffu."s), wanted);
  EXPECT_EQ(read_list("\x80\2](X\5\0\0\0a.jpgK\3\x86X\5\0\0\0b.jpgJ\xff\xff\xff\xff\x86"
                      "e."s),
            wanted);
  EXPECT_EQ(read_list("\x80\2](X\5\0\0\0a.jpgX\5\0\0\0b.jpge."s).size(), 2u);
}

TEST(PickleList, labels_of_every_shape) {
  EXPECT_EQ(read_list("\x80\2}(X\5\0\0\0a.jpgX\3\0\0\0catX\5\0\0\0b.jpgK\3u."s)[0].fields.at("cls"),
            "cat");
  EXPECT_EQ(read_list("\x80\2}(X\5\0\0\0a.jpgX\3\0\0\0catX\5\0\0\0b.jpgK\3u."s)[1].fields.at("cls"),
            "3");
  EXPECT_EQ(read_list("\x80\2}(X\5\0\0\0a.jpgK\1K\2K\3\x87u."s)[0].fields.at("cls"), "1|2|3");
  EXPECT_EQ(
      read_list("\x80\2}(X\5\0\0\0a.jpg}(X\1\0\0\0xG?\xe0\0\0\0\0\0\0X\1\0\0\0yK\2uu."s)[0].fields,
      (std::map<std::string, std::string>{{"jpg", "A"}, {"x", "0.5"}, {"y", "2"}}));
}

TEST(PickleList, problems_name_file_and_entry) {
  Status s;
  (void)read_list("\x80\2K\1."s, &s);
  EXPECT_TRUE(says(s, "d/l.pkl") && says(s, "neither a dict")) << s.text();
  (void)read_list("\x80\2}(X\5\0\0\0a.jpgK\1K\2K\3u."s, &s);
  EXPECT_TRUE(says(s, "entry 2: the path is no text")) << s.text();
  (void)read_list("\x80\2}(X\5\0\0\0a.jpg]]au."s, &s);
  EXPECT_TRUE(says(s, "entry 1: a label that is no scalar")) << s.text();
  (void)read_list("\x80\2}(X\5\0\0\0a.jpgcnumpy\nint64\nu."s, &s);
  EXPECT_TRUE(says(s, "numpy.int64")) << s.text();
}

}  // namespace
}  // namespace headrace
