/// The hundred places that ship with the program, for demonstrations: the file `spots.csv`, as it is.
public enum ShippedSpots {
  /// The places, in the order of the file.
  public static var spots: [Spot] { SpotsCSV(PackageResources.spots_csv).spots }
}
