// SPDX-License-Identifier: Apache-2.0
#include "storage/versioned.h"

namespace headrace {

VersionedStore::Stripe& VersionedStore::stripe_of(std::string_view path) const {
  return stripes_[TextHash()(path) % stripes_.size()];
}

void VersionedStore::expect(const FileInfo& file) const {
  if (file.version.empty() || file.is_folder) return;
  Stripe& stripe = stripe_of(file.path);
  MutexLock lock(stripe.mu);
  stripe.versions.insert_or_assign(file.path, file.version);
}

// Who asks for a version gets that one.
void VersionedStore::stamp(ReadRequest& request) const {
  if (!request.version.empty()) return;
  Stripe& stripe = stripe_of(request.path);
  MutexLock lock(stripe.mu);
  const auto known = stripe.versions.find(request.path);
  if (known != stripe.versions.end()) request.version = known->second;
}

void VersionedStore::read(std::span<ReadRequest> requests) const {
  for (ReadRequest& request : requests) stamp(request);
  inner().read(requests);
}

bool VersionedStore::read_if_resident(ReadRequest& request) const {
  stamp(request);
  return inner().read_if_resident(request);
}

}  // namespace headrace
