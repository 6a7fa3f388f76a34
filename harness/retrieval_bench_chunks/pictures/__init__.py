"""Pictures of recall over tokens."""
