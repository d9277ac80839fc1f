// The model types whose rotary embeddings are known to this library, supported or refused by name.
#pragma once

#include <string_view>

namespace ropewalk::config {

/// Whether a canonical model type is one of transformers' that rotate. Another one is taken for the
/// Llama kind only where its config speaks of rotary embeddings.
[[nodiscard]] bool is_known_model(std::string_view model_type) noexcept;

}  // namespace ropewalk::config
