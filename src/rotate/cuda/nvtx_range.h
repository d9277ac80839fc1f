// A named span around each launch, in NVTX's domain "ropewalk": what Nsight Systems and other tools
// show on the host's time line. Without an attached tool NVTX makes no domain, and a span is one
// comparison.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <string>

namespace ropewalk::cuda {

/// Null where no tool is attached to the process.
[[nodiscard]] inline nvtxDomainHandle_t nvtx_domain() noexcept {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("ropewalk");
  return domain;
}

/// From its construction to its destruction, on this thread.
class NvtxRange {
 public:
  /// `name` is called, and its text made, only where a tool listens.
  template <class Name>
  explicit NvtxRange(const Name& name) : domain_(nvtx_domain()) {
    if (domain_ == nullptr) [[likely]]
      return;
    const std::string text = name();
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = text.c_str();
    nvtxDomainRangePushEx(domain_, &attributes);
  }
  ~NvtxRange() {
    if (domain_ != nullptr) nvtxDomainRangePop(domain_);
  }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  nvtxDomainHandle_t domain_;
};

}  // namespace ropewalk::cuda
