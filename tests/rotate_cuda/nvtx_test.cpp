// Spans of launches, seen by a tool that is linked into this program. Needs no GPU.
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <string>
#include <vector>

#include "rotate/cuda/nvtx_range.h"

namespace {

/// What the tool has seen since the last clear().
std::vector<std::string>& seen() {
  static std::vector<std::string> events;
  return events;
}

int the_domain = 0;
bool attached = false;

nvtxDomainHandle_t on_domain(const char* name) {
  seen().push_back(std::string("domain ") + name);
  return reinterpret_cast<nvtxDomainHandle_t>(&the_domain);
}

int on_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  EXPECT_EQ(domain, reinterpret_cast<nvtxDomainHandle_t>(&the_domain));
  EXPECT_EQ(attributes->messageType, NVTX_MESSAGE_TYPE_ASCII);
  seen().push_back(std::string("push ") + attributes->message.ascii);
  return 0;
}

int on_pop(nvtxDomainHandle_t domain) {
  EXPECT_EQ(domain, reinterpret_cast<nvtxDomainHandle_t>(&the_domain));
  seen().emplace_back("pop");
  return 0;
}

/// What NVTX asks of a tool that is loaded: its functions in place of none.
int initialize(NvtxGetExportTableFunc_t get_table) {
  const auto* table = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (table == nullptr) return 0;
  NvtxFunctionTable functions = nullptr;
  unsigned int size = 0;
  if (table->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &functions, &size) == 0) return 0;
  const auto put = [&](unsigned int id, auto* function) {
    if (id < size) *functions[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  };
  put(NVTX_CBID_CORE2_DomainCreateA, on_domain);
  put(NVTX_CBID_CORE2_DomainRangePushEx, on_push);
  put(NVTX_CBID_CORE2_DomainRangePop, on_pop);
  attached = true;
  return 1;
}

TEST(NvtxTest, SpansAreInADomainOfOurOwn) {
  InitializeInjectionNvtx2_fnptr = initialize;  // NVTX asks at its first call
  ASSERT_NE(ropewalk::cuda::nvtx_domain(), nullptr);
  ASSERT_TRUE(attached);
  ASSERT_EQ(seen(), std::vector<std::string>{"domain ropewalk"});
  seen().clear();
  int made = 0;
  {
    const ropewalk::cuda::NvtxRange range([&made] {
      ++made;
      return std::string("rotate 8x2");
    });
    EXPECT_EQ(seen(), std::vector<std::string>{"push rotate 8x2"});
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(seen(), (std::vector<std::string>{"push rotate 8x2", "pop"}));
}

}  // namespace
