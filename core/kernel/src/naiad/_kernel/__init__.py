"""The private half of Naiad: nobody outside the distribution `naiad` imports from here."""
