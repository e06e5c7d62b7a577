"""The search over revision trees and its budget, as pure functions over plain records."""
